import pytest

from emberlake.errors import CredentialsExpired
from emberlake.io.object import publish
from emberlake.io.object.config import parse_config
from emberlake.io.object.failures import Failure
from emberlake.io.object.location import locate

LOST = Failure("GenericError", None, None, None, "HttpError { kind: Timeout }")
REFUSED = Failure("GenericError", None, None, None, "HttpError { kind: Connect }")


@pytest.mark.parametrize(("first", "had_no_effect"), [(LOST, False), (REFUSED, True)])
def test_credentials_that_expire_do_not_show_what_became_of_the_previous_try(
    monkeypatch: pytest.MonkeyPatch, *, first: Failure, had_no_effect: bool
) -> None:
    location = locate("s3://lake/snapshot-1")
    config = parse_config(location, {"s3.access-key": "k", "s3.secret-key": "s"}, {})
    tries = iter([first])

    def create(*_: object) -> Failure:
        for failure in tries:
            return failure
        raise CredentialsExpired("over", had_no_effect=True)

    monkeypatch.setattr(publish, "create_once", create)
    monkeypatch.setattr(publish, "_standing", lambda *_: None)
    monkeypatch.setattr(publish, "has_reached", lambda *_: True)

    with pytest.raises(CredentialsExpired) as raised:
        publish.put_or_read(config, location, b"1")

    assert raised.value.had_no_effect is had_no_effect
