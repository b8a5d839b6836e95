"""A session with hadoop-aws reads plain Parquet files of S3 by itself."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pyspark
import pytest

from needs import lacking
from servers import Server
from spark.children import ROOT
from spark.drivers.session import run_driver

POM = Path(__file__).parent / "hadoop_aws" / "pom.xml"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


@pytest.fixture(scope="session")
def hadoop_aws() -> Path:
    """The jars, fetched once: 52 of them, 19 MB."""
    spark_jars = Path(pyspark.__file__).parent / "jars"
    (client,) = spark_jars.glob("hadoop-client-api-*.jar")
    version = re.sub(r"hadoop-client-api-(.*)\.jar", r"\1", client.name)
    jars = ROOT / ".build" / f"hadoop-aws-{version}"
    if not jars.exists():
        if shutil.which("mvn") is None:
            lacking("Maven is missing, which fetches hadoop-aws")
        fetched = jars.with_suffix(".fetched")
        shutil.rmtree(fetched, ignore_errors=True)
        subprocess.run(
            [
                *("mvn", "-q", "-B", "-f", str(POM), COPY),
                *(f"-Dhadoop.version={version}", f"-DoutputDirectory={fetched}"),
            ],
            check=True,
            timeout=280,
        )
        fetched.rename(jars)
    return jars


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_session_with_a_client_for_s3_reads_files_by_itself(
    s3: Server, hadoop_aws: Path, tmp_path: Path
) -> None:
    options = {"warehouse": f"{s3.root}/native", **s3.options}

    assert run_driver("native_lake", tmp_path, hadoop_aws, json.dumps(options)) == 0
