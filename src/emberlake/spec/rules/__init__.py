"""Which schemas the format allows. Spec: "Schema files".

A table is created, and changed, only if its schema keeps every rule. Rules of one kind are in one
module; each is a function that yields what is wrong, so that one error can list all of it.
"""

from typing import Final

from emberlake.spec.rules import columns, keys, merging, options
from emberlake.spec.rules.check import Check
from emberlake.spec.schema import TableSchema

__all__ = ["find_problems"]

_CHECKS: Final[tuple[Check, ...]] = (
    *columns.CHECKS,
    *keys.CHECKS,
    *merging.CHECKS,
    *options.CHECKS,
)


def find_problems(schema: TableSchema) -> list[str]:
    """Everything in a schema that the format does not allow."""
    return [problem for check in _CHECKS for problem in check(schema)]
