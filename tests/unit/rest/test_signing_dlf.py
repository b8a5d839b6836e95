"""Signatures of Data Lake Formation, compared with what pypaimon 2.1 signs."""

import pytest

from emberlake.rest.paths import Endpoint
from emberlake.rest.signing_dlf import (
    DlfAlgorithm,
    DlfCredentials,
    DlfRequest,
    algorithm_for,
    region_of,
    sign_dlf,
)

CREDENTIALS = DlfCredentials("access-key-id", "access-key-secret", "securityToken")
MOMENT = 1744775086_000  # 2025-04-16T03:44:46Z
LIST = DlfRequest(
    method="GET",
    path="/v1/paimon/databases",
    query={"pageToken": "a b", "maxResults": "10"},
    endpoint=Endpoint.LIST_DATABASES,
)
CREATE = DlfRequest(
    method="POST",
    path="/v1/paimon/databases",
    body=b'{"name":"db","options":{}}',
    host="dlfnext.cn-hangzhou.aliyuncs.com",
    endpoint=Endpoint.CREATE_DATABASE,
)


def sign(algorithm: DlfAlgorithm, request: DlfRequest) -> dict[str, str]:
    return sign_dlf(
        algorithm, request, CREDENTIALS, region="cn-hangzhou", now_ms=MOMENT, nonce="nonce-1"
    )


@pytest.mark.parametrize(
    ("algorithm", "request_", "end"),
    [
        (
            DlfAlgorithm.DEFAULT,
            LIST,
            "Signature=4ba7d051397058d58586103dfdeb2fc62e00b2415385eaf224a8e0299dcf43be",
        ),
        (
            DlfAlgorithm.DEFAULT,
            CREATE,
            "Signature=a12a26f9467fa6db5e93d0894027dc267fea88644218ad3b184a120fdaf2f509",
        ),
        (DlfAlgorithm.OPENAPI, CREATE, "acs access-key-id:t9wSRUSJHgIHDGRgsBsO4TMtR8o="),
        (
            DlfAlgorithm.OPENAPI_V4,
            CREATE,
            "Signature=50ace040e5e78547f1079bb22af5d66b44e7080b10c1960d45adeaf15764d7ae",
        ),
    ],
)
def test_a_request_is_signed_as_others_sign_it(
    algorithm: DlfAlgorithm, request_: DlfRequest, end: str
) -> None:
    headers = sign(algorithm, request_)

    assert headers["Authorization"].endswith(end)


def test_a_body_is_sent_with_its_hash() -> None:
    assert sign(DlfAlgorithm.DEFAULT, CREATE)["Content-MD5"] == "O9GcoEH4s9EulQzEIq1JlA=="


def test_the_region_and_the_algorithm_come_from_the_address() -> None:
    assert region_of("https://cn-hangzhou-vpc.dlf.aliyuncs.com") == "cn-hangzhou"
    assert region_of("http://localhost:8080") is None
    assert algorithm_for("dlfnext.cn-hangzhou.aliyuncs.com") is DlfAlgorithm.OPENAPI
    assert algorithm_for("cn-hangzhou-vpc.dlf.aliyuncs.com") is DlfAlgorithm.DEFAULT


def test_credentials_do_not_show_their_secrets() -> None:
    shown = repr(CREDENTIALS)

    assert "access-key-secret" not in shown
    assert "securityToken" not in shown
