"""The aggregate functions, by their names in options. Spec: "Merge engines"."""

from enum import StrEnum
from typing import Final


class Aggregate(StrEnum):
    """How the values that a column has in the records of one key become one."""

    PRIMARY_KEY = "primary-key"
    SUM = "sum"
    PRODUCT = "product"
    MAX = "max"
    MIN = "min"
    LAST_VALUE = "last_value"
    LAST_NON_NULL_VALUE = "last_non_null_value"
    FIRST_VALUE = "first_value"
    FIRST_NON_NULL_VALUE = "first_non_null_value"
    LISTAGG = "listagg"
    BOOL_AND = "bool_and"
    BOOL_OR = "bool_or"
    COLLECT = "collect"
    MERGE_MAP = "merge_map"
    MERGE_MAP_WITH_KEYTIME = "merge_map_with_keytime"
    NESTED_UPDATE = "nested_update"
    NESTED_PARTIAL_UPDATE = "nested_partial_update"
    RBM32 = "rbm32"
    RBM64 = "rbm64"
    HLL_SKETCH = "hll_sketch"
    THETA_SKETCH = "theta_sketch"

    @property
    def ignores_order(self) -> bool:
        """Whether the result does not depend on the order of the records."""
        return self in _IGNORES_ORDER


_LEGACY_NAMES: Final = {"first_not_null_value": Aggregate.FIRST_NON_NULL_VALUE}
AGGREGATE_NAMES: Final = frozenset({*map(str, Aggregate), *_LEGACY_NAMES})
# Not product: a retraction before the first value is lost, and decimals are rounded.
_IGNORES_ORDER: Final = frozenset(
    {
        Aggregate.PRIMARY_KEY,
        Aggregate.SUM,
        Aggregate.MAX,
        Aggregate.MIN,
        Aggregate.BOOL_AND,
        Aggregate.BOOL_OR,
        Aggregate.RBM32,
    }
)


def parse_aggregate(name: str) -> Aggregate:
    """The function with that name.

    Raises:
        ValueError: there is no such function.
    """
    return _LEGACY_NAMES.get(name) or Aggregate(name)
