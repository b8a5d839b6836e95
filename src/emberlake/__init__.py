"""Apache Paimon tables from Python: a fast engine on Apache Arrow.

Names are loaded when they are first used, so that ``import emberlake`` costs next to nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any, Final

from emberlake._version import __version__
from emberlake.base.extras import offer
from emberlake.errors import (
    AlreadyCommitted,
    AlreadyExists,
    BranchAlreadyExists,
    BranchNotFound,
    ColumnAlreadyExists,
    ColumnNotFound,
    CommitConflict,
    CommitUnknown,
    ConflictReason,
    CorruptFile,
    DatabaseAlreadyExists,
    DatabaseNotEmpty,
    DatabaseNotFound,
    DataMismatch,
    EmberlakeError,
    EmberlakeWarning,
    FileNotFound,
    FilesMissing,
    FunctionNotFound,
    IncompleteJob,
    InvalidExpression,
    InvalidIdentifier,
    InvalidInput,
    InvalidOption,
    InvalidPredicate,
    InvalidSchema,
    InvalidSql,
    InvalidState,
    MessageMismatch,
    NoPermission,
    NotAuthenticated,
    NotFound,
    SchemaNotFound,
    ServerError,
    SnapshotNotFound,
    SnapshotOverwritten,
    StorageError,
    TableAlreadyExists,
    TableNotFound,
    TagAlreadyExists,
    TagNotFound,
    Unsupported,
    ViewNotFound,
)

# SQL is built on catalogs, so it is a higher layer, which they must not import.
offer("catalog.sql", "emberlake.sql.local")

if TYPE_CHECKING:
    from emberlake.catalog import Catalog, CatalogFactory
    from emberlake.commit.change import CommitResult
    from emberlake.expressions.syntax import lit
    from emberlake.inspect import SystemTable
    from emberlake.predicates import PredicateBuilder
    from emberlake.rowops.merge_builder import MergeBuilder
    from emberlake.rowops.result import RowChangeResult, WriteResult
    from emberlake.spec.generic_row import GenericRow
    from emberlake.spec.identifier import Identifier
    from emberlake.spec.instant import Instant
    from emberlake.spec.key_value import RowKind
    from emberlake.spec.schema import Schema
    from emberlake.spec.schema_change import Move, SchemaChange
    from emberlake.spec.tag import Tag
    from emberlake.sql.magics import (  # only IPython uses them
        load_ipython_extension,  # noqa: F401
        unload_ipython_extension,  # noqa: F401
    )
    from emberlake.table import Table
    from emberlake.table.managers import TagManager
    from emberlake.table.table_update import WhenMatched, WhenNotMatched, source_col, target_col
    from emberlake.types import (
        ArrayType,
        AtomicType,
        DataField,
        MapType,
        MultisetType,
        RowType,
        VectorType,
    )
    from emberlake.wire import CommitMessage

_HOMES: Final = {
    "ArrayType": "emberlake.types",
    "AtomicType": "emberlake.types",
    "Catalog": "emberlake.catalog",
    "CatalogFactory": "emberlake.catalog",
    "CommitMessage": "emberlake.wire",
    "CommitResult": "emberlake.commit.change",
    "DataField": "emberlake.types",
    "GenericRow": "emberlake.spec.generic_row",
    "Identifier": "emberlake.spec.identifier",
    "Instant": "emberlake.spec.instant",
    "MapType": "emberlake.types",
    "MergeBuilder": "emberlake.rowops.merge_builder",
    "Move": "emberlake.spec.schema_change",
    "MultisetType": "emberlake.types",
    "PredicateBuilder": "emberlake.predicates",
    "RowChangeResult": "emberlake.rowops.result",
    "RowKind": "emberlake.spec.key_value",
    "RowType": "emberlake.types",
    "Schema": "emberlake.spec.schema",
    "SchemaChange": "emberlake.spec.schema_change",
    "SystemTable": "emberlake.inspect",
    "Table": "emberlake.table",
    "Tag": "emberlake.spec.tag",
    "TagManager": "emberlake.table.managers",
    "VectorType": "emberlake.types",
    "lit": "emberlake.expressions.syntax",
    "load_ipython_extension": "emberlake.sql.magics",
    "unload_ipython_extension": "emberlake.sql.magics",
    "target_col": "emberlake.table.table_update",
    "source_col": "emberlake.table.table_update",
    "WhenNotMatched": "emberlake.table.table_update",
    "WriteResult": "emberlake.rowops.result",
    "WhenMatched": "emberlake.table.table_update",
}

__all__ = [
    "AlreadyCommitted",
    "AlreadyExists",
    "ArrayType",
    "AtomicType",
    "BranchAlreadyExists",
    "BranchNotFound",
    "Catalog",
    "CatalogFactory",
    "ColumnAlreadyExists",
    "ColumnNotFound",
    "CommitConflict",
    "CommitMessage",
    "CommitResult",
    "CommitUnknown",
    "ConflictReason",
    "CorruptFile",
    "DataField",
    "DataMismatch",
    "DatabaseAlreadyExists",
    "DatabaseNotEmpty",
    "DatabaseNotFound",
    "EmberlakeError",
    "EmberlakeWarning",
    "FileNotFound",
    "FilesMissing",
    "FunctionNotFound",
    "GenericRow",
    "Identifier",
    "IncompleteJob",
    "Instant",
    "InvalidExpression",
    "InvalidIdentifier",
    "InvalidInput",
    "InvalidOption",
    "InvalidPredicate",
    "InvalidSchema",
    "InvalidSql",
    "InvalidState",
    "MapType",
    "MergeBuilder",
    "MessageMismatch",
    "Move",
    "MultisetType",
    "NoPermission",
    "NotAuthenticated",
    "NotFound",
    "PredicateBuilder",
    "RowChangeResult",
    "RowKind",
    "RowType",
    "Schema",
    "SchemaChange",
    "SchemaNotFound",
    "ServerError",
    "SnapshotNotFound",
    "SnapshotOverwritten",
    "StorageError",
    "SystemTable",
    "Table",
    "TableAlreadyExists",
    "TableNotFound",
    "Tag",
    "TagAlreadyExists",
    "TagManager",
    "TagNotFound",
    "Unsupported",
    "VectorType",
    "ViewNotFound",
    "WhenMatched",
    "WhenNotMatched",
    "WriteResult",
    "__version__",
    "lit",
    "source_col",
    "target_col",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
