import signal
import threading
import time

import pytest

from emberlake.base.parallel import parallel_map


def test_results_come_in_order() -> None:
    assert list(parallel_map(lambda n: n * n, range(50), workers=4)) == [n * n for n in range(50)]


def test_the_first_error_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        list(parallel_map(lambda n: 1 // (n - 3), range(50), workers=4))


def test_ctrl_c_does_not_wait_for_what_is_under_way() -> None:
    answered = threading.Event()
    to_main = (threading.main_thread().ident, signal.SIGINT)
    threading.Timer(0.2, signal.pthread_kill, to_main).start()
    begin = time.monotonic()

    with pytest.raises(KeyboardInterrupt):
        list(parallel_map(lambda _: answered.wait(20), range(9), workers=2))

    assert time.monotonic() - begin < 5
    answered.set()
