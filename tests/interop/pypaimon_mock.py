"""Runs in .venv-peers: the mock of a REST catalog server that pypaimon tests its client with.

    python pypaimon_mock.py FOLDER TOKEN

It says where it listens in a line of JSON, and ends when its input does.
"""

import json
import sys

from pypaimon.api.api_response import ConfigResponse
from pypaimon.api.auth import BearTokenAuthProvider
from pypaimon.tests.rest.rest_server import RESTCatalogServer

WAREHOUSE = "warehouse"


def main(folder: str, token: str) -> None:
    server = RESTCatalogServer(
        data_path=folder,
        auth_provider=BearTokenAuthProvider(token),
        config=ConfigResponse(defaults={"prefix": "mock"}),
        warehouse=WAREHOUSE,
    )
    server.start()
    where = {"uri": f"http://127.0.0.1:{server.port}", "warehouse": WAREHOUSE}
    sys.stdout.write(json.dumps(where) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
