"""A storage that reports every call, before and after its effect, and can be made to fail."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from emberlake.errors import StorageError
from emberlake.io import OneByOne, Output, Storage, StorageTraits
from emberlake.io.wrapped import WrappedOutput


@dataclass(frozen=True)
class Call:
    """One call of a storage; numbers count from 1."""

    number: int
    method: str
    path: str
    is_done: bool  # whether it has had its effect

    def __str__(self) -> str:
        return f"call {self.number}, {self.method} of {self.path}"


Watcher = Callable[[Call], None]


class WatchedStorage(OneByOne):
    """Passes every call on, and tells ``watch`` right before and right after its effect.

    A file that is written counts twice: when it is opened (``open_output``) and when it becomes
    whole (``close_output``). Calls for many files are made file by file, so that they can fail in
    the middle.
    """

    def __init__(self, inner: Storage, watch: Watcher = lambda call: None) -> None:
        self.inner = inner
        self.watch = watch
        self.calls: list[Call] = []
        self._lock = threading.Lock()

    def _tell(self, method: str, path: str) -> Call:
        with self._lock:
            call = Call(len(self.calls) + 1, method, path, is_done=False)
            self.calls.append(call)
        self.watch(call)
        return call

    def _done(self, call: Call) -> None:
        self.watch(Call(call.number, call.method, call.path, is_done=True))

    @property
    def traits(self) -> StorageTraits:
        return replace(self.inner.traits, spark_reads=False)  # we would not see Spark's reads

    def local_file(self, path: str) -> None:
        """None: reads of a file that is opened by its name would not be seen."""

    def open_output(self, path: str, target: int | None = None) -> Output:
        call = self._tell("open_output", path)
        output = self.inner.open_output(path, target)
        try:
            self._done(call)
        except BaseException:
            output.abort()
            raise
        return _WatchedOutput(output, self)

    def __getattr__(self, method: str) -> Callable[..., object]:
        original = getattr(self.inner, method)

        def watched(path: str, *arguments: object) -> object:
            call = self._tell(method, path)
            result = original(path, *arguments)
            self._done(call)
            return result

        return watched


class _WatchedOutput(WrappedOutput):
    def __init__(self, output: Output, storage: WatchedStorage) -> None:
        super().__init__(output)
        self._storage = storage

    def _finish(self) -> None:
        call = self._storage._tell("close_output", self.path)
        super()._finish()
        self._storage._done(call)


class FaultyStorage(WatchedStorage):
    """Fails at its nth call, before or after the effect, and works from then on.

    With ``for_good`` it never works again after that, as when a network is gone.
    """

    def __init__(
        self, inner: Storage, fail_at: int, *, after_effect: bool, for_good: bool = False
    ) -> None:
        super().__init__(inner, self._fail)
        self.fail_at = fail_at
        self.after_effect = after_effect
        self.for_good = for_good
        self.failed: Call | None = None

    def _fail(self, call: Call) -> None:
        if self.for_good and self.failed is not None:
            raise StorageError(f"still broken: {call}")
        if call.number == self.fail_at and call.is_done is self.after_effect:
            self.failed = call
            raise StorageError(f"injected: {call}")


class StormyStorage(WatchedStorage):
    """Fails by chance, before the effect of a call or after it."""

    def __init__(self, inner: Storage, chance: Random, rate: float) -> None:
        super().__init__(inner, self._fail)
        self.failed: list[Call] = []
        self._chance = chance
        self._rate = rate

    def _fail(self, call: Call) -> None:
        if self._chance.random() < self._rate:
            self.failed.append(call)
            raise StorageError(f"injected: {call}")
