"""Runs programs one after the other, so that they share one start of Python and of a JVM.

Asked on standard input, a line of JSON each:

    {"folder": ..., "blocks": [[name, line, code], ...], "environment": {...}}
                                                                 blocks of a page, in one namespace
    {"folder": ..., "script": path, "arguments": [...]}        a script, as if started by itself

The answer is what each has printed, or the traceback of the one that failed. A Spark session that a
program leaves behind is stopped: the next one makes its own.
"""

import contextlib
import io
import json
import os
import runpy
import sys
import tempfile
import traceback
from typing import Any
from unittest import mock


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # pages leave it out where it would distract
    # Whatever else writes to standard output, a JVM say, must not get into the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(answer_to(json.loads(line))), file=answers, flush=True)


def answer_to(request: dict[str, Any]) -> dict[str, Any]:
    os.chdir(request["folder"])
    tempfile.tempdir = request["folder"]  # what they leave behind goes with it
    printed: list[str] = []
    try:
        if "script" in request:
            printed.append(run_script(request["script"], request["arguments"]))
        else:
            namespace: dict[str, Any] = {"__name__": "__main__"}
            with mock.patch.dict(os.environ, request["environment"]):
                for name, number, code in request["blocks"]:
                    printed.append(run_block(namespace, name, number, code))
    except BaseException:  # noqa: BLE001  # also SystemExit: a failure is an answer, not the end
        return {"failure": traceback.format_exc(), "printed": printed}
    finally:
        stop_spark()
    return {"printed": printed}


def run_block(namespace: dict[str, Any], name: str, number: int, code: str) -> str:
    # Empty lines before it: a traceback names the line of the page.
    program = compile("\n" * (number - 1) + code, name, "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(program, namespace)
    return out.getvalue()


def run_script(path: str, arguments: list[str]) -> str:
    sys.argv = [path, *arguments]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        runpy.run_path(path, run_name="__main__")
    return out.getvalue()


def stop_spark() -> None:
    sql = sys.modules.get("pyspark.sql")
    session = sql.SparkSession.getActiveSession() if sql else None
    if session is not None:
        session.stop()


if __name__ == "__main__":
    main()
