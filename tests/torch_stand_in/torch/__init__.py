"""What emberlake uses of PyTorch, as small as can be: the real one takes gigabytes on Linux."""

from typing import Any, Self

import numpy as np

long = np.int64


class Tensor:
    """Numbers, which workers share with the process that started them."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def share_memory_(self) -> Self:
        return self

    def numpy(self) -> Any:
        return self._values

    def tolist(self) -> Any:
        return self._values.tolist()

    def __iadd__(self, other: int) -> Self:
        self._values += other
        return self

    def __int__(self) -> int:
        return int(self._values)


def tensor(value: Any, dtype: Any = None) -> Tensor:
    return Tensor(np.array(value, dtype))


def from_numpy(values: Any) -> Tensor:
    assert values.flags.writeable, "PyTorch warns of arrays that cannot be written to"
    return Tensor(values)
