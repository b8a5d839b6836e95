"""The column types of the format, their text and JSON forms, and their Arrow types."""

from emberlake.types.arrow import (
    arrow_field,
    arrow_schema,
    arrow_type,
    from_arrow_schema,
    from_arrow_type,
)
from emberlake.types.data_types import (
    ArrayType,
    AtomicType,
    DataField,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VectorType,
    nested_types,
)
from emberlake.types.json import type_from_json, type_to_json

__all__ = [
    "ArrayType",
    "AtomicType",
    "DataField",
    "DataType",
    "MapType",
    "MultisetType",
    "RowType",
    "TypeRoot",
    "VectorType",
    "arrow_field",
    "arrow_schema",
    "arrow_type",
    "from_arrow_schema",
    "from_arrow_type",
    "nested_types",
    "type_from_json",
    "type_to_json",
]
