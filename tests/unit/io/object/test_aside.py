import threading
import time

import pytest

from emberlake.io.object import aside
from emberlake.io.object.aside import run_briefly


class Panic(BaseException):
    """As the client library raises when it is broken: not an Exception."""


def test_a_brief_call_that_breaks_is_not_taken_for_one_that_hangs() -> None:
    def panic() -> None:
        raise Panic

    begin = time.monotonic()
    with pytest.raises(Panic):
        run_briefly(panic)

    assert time.monotonic() - begin < aside._BRIEFLY_S
    assert not aside._hanging


def test_of_many_brief_calls_that_hang_only_one_is_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aside, "_BRIEFLY_S", 0.5)
    goes_on = threading.Event()

    begin = time.monotonic()
    for _ in range(5):
        run_briefly(goes_on.wait)
    waited = time.monotonic() - begin
    goes_on.set()

    assert 0.5 <= waited < 2
    while aside._hanging:
        time.sleep(0.01)
