import pytest

from emberlake.errors import InvalidInput
from emberlake.io.object.location import Cloud, locate


@pytest.mark.parametrize(
    ("path", "cloud", "bucket", "host", "key"),
    [
        ("s3://lake/wh/t", Cloud.S3, "lake", "", "wh/t"),
        ("s3a://lake/wh/", Cloud.S3, "lake", "", "wh"),
        ("S3N://lake", Cloud.S3, "lake", "", ""),
        ("s3://lake//wh", Cloud.S3, "lake", "", "wh"),
        ("gs://lake/wh/dt=a%20b", Cloud.GCS, "lake", "", "wh/dt=a%20b"),
        ("abfss://c@a.dfs.core.windows.net/wh", Cloud.AZURE, "c", "a.dfs.core.windows.net", "wh"),
        ("wasb://c@a.blob.core.windows.net/", Cloud.AZURE, "c", "a.blob.core.windows.net", ""),
        ("oss://lake/wh", Cloud.OSS, "lake", "", "wh"),
        ("oss://lake.oss-cn-x.aliyuncs.com/wh", Cloud.OSS, "lake", "oss-cn-x.aliyuncs.com", "wh"),
    ],
)
def test_a_path_says_where_an_object_is(
    path: str, cloud: Cloud, bucket: str, host: str, key: str
) -> None:
    found = locate(path)

    assert (found.cloud, found.bucket, found.host, found.key) == (cloud, bucket, host, key)


def test_a_path_keeps_its_scheme_and_loses_superfluous_slashes() -> None:
    assert locate("s3a://lake//wh/t/").path == "s3a://lake/wh/t"
    assert locate("s3://lake/").path == "s3://lake"
    assert locate("s3://lake").child("a").path == "s3://lake/a"


@pytest.mark.parametrize(
    "path",
    [
        "/data",
        "ftp://host/x",
        "s3:/lake/x",
        "s3://lake/a//b",
        "s3://lake/a/../b",
        "gs://",
        "s3:///x",
    ],
)
def test_what_is_no_path_of_a_store_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput):
        locate(path)


@pytest.mark.parametrize("path", ["s3n://key:hidden@lake/x", "oss://key:hidden@lake/x"])
def test_secrets_in_a_path_are_refused_and_not_repeated(path: str) -> None:
    with pytest.raises(InvalidInput, match="given as catalog options") as raised:
        locate(path)

    assert "hidden" not in str(raised.value)
