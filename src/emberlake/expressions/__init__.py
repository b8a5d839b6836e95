"""Expressions of SQL text: parsed, tied to columns and types, evaluated on Arrow columns."""

from emberlake.expressions.assignments import bind_each
from emberlake.expressions.binding import (
    Expression,
    bind_assignment,
    bind_condition,
    bind_expression,
    equality,
)
from emberlake.expressions.evaluate import Frame, evaluate, select
from emberlake.expressions.pushdown import split_condition
from emberlake.expressions.scope import Scope, Source
from emberlake.expressions.syntax import Lit, lit
from emberlake.expressions.typed import columns_used, conjunction, conjuncts, sources_used

__all__ = [
    "Expression",
    "Frame",
    "Lit",
    "Scope",
    "Source",
    "bind_assignment",
    "bind_condition",
    "bind_each",
    "bind_expression",
    "columns_used",
    "conjunction",
    "conjuncts",
    "equality",
    "evaluate",
    "lit",
    "select",
    "sources_used",
    "split_condition",
]
