"""The cases hold with tables on an S3 server as well, which workers reach without a JAR.

``cases/test_object_stores`` is about S3 itself, and is the sample in the fast suite. The tables
of ``cases/test_rest`` live where its server says.
"""

import pytest

from spark.children import run_pytest
from spark.test_modes import CASES, TIMEOUT_S


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT_S + 30)  # the subprocess is stopped before
def test_every_case_holds_on_s3() -> None:
    others = [f"--ignore={CASES / name}" for name in ("test_object_stores.py", "test_rest.py")]
    environment = {"EMBERLAKE_SPARK_TABLES": "s3"}

    run_pytest(CASES, *others, environment=environment, timeout_s=TIMEOUT_S)
