"""Every public name is in reference.md, with the signature that it has; so is every option."""

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

import emberlake
import emberlake.spark
from docs.pages import DOCS, section_of
from emberlake import errors
from emberlake.catalog import (
    Catalog,
    CatalogFactory,
    Database,
    GetTagResponse,
    PagedList,
    Partition,
)
from emberlake.commit.change import CommitResult
from emberlake.inspect import SystemTable
from emberlake.options import KNOWN
from emberlake.read.scan import Scan
from emberlake.read.short_reads import ShortReads
from emberlake.spark import SparkWriteResult
from emberlake.table.listings import Listings
from emberlake.table.managers import BranchManager, SchemaManager, SnapshotManager, TagManager
from emberlake.table.read_builder import Plan, ReadBuilder, TableScan
from emberlake.table.short_forms import FileScan, ShortForms
from emberlake.table.stream_read import StreamingTableScan, StreamReadBuilder
from emberlake.table.table_commit import BatchTableCommit, StreamTableCommit, TableCommit
from emberlake.table.table_read import TableRead
from emberlake.table.table_update import BatchTableUpdate
from emberlake.table.versions import VersionedTable
from emberlake.table.write_builder import (
    BatchTableWrite,
    BatchWriteBuilder,
    PostponeFixedBucketWriteBuilder,
    StreamTableWrite,
    StreamWriteBuilder,
    TableWrite,
)

PAGE = DOCS / "reference.md"
TEXT = PAGE.read_text(encoding="utf-8")
# Classes that have a section of their own, for what they add to their parents.
CLASSES: tuple[type, ...] = (
    ShortReads,
    ShortForms,
    Listings,
    VersionedTable,
    SnapshotManager,
    TagManager,
    BranchManager,
    SchemaManager,
    emberlake.Tag,
    emberlake.Instant,
    CatalogFactory,
    Catalog,
    emberlake.Identifier,
    emberlake.Schema,
    emberlake.SchemaChange,
    emberlake.Move,
    emberlake.Table,
    SystemTable,
    ReadBuilder,
    TableScan,
    Plan,
    TableRead,
    Scan,
    FileScan,
    emberlake.PredicateBuilder,
    StreamReadBuilder,
    StreamingTableScan,
    BatchWriteBuilder,
    PostponeFixedBucketWriteBuilder,
    StreamWriteBuilder,
    TableWrite,
    BatchTableWrite,
    StreamTableWrite,
    TableCommit,
    BatchTableCommit,
    StreamTableCommit,
    emberlake.CommitMessage,
    emberlake.MergeBuilder,
    BatchTableUpdate,
)
CONSTRUCTORS: tuple[type, ...] = (
    emberlake.AtomicType,
    emberlake.ArrayType,
    emberlake.MapType,
    emberlake.MultisetType,
    emberlake.RowType,
    emberlake.VectorType,
    emberlake.DataField,
    emberlake.Identifier,
    emberlake.Schema,
    emberlake.PredicateBuilder,
)


def signature(function: Callable[..., Any], name: str) -> str:
    """``name(a, b=None)``: as it is called, without types."""
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in ("self", "cls")
    ]
    return f"{name}{inspect.Signature(parameters)}"


def public_members(cls: type) -> list[str]:
    """What a class adds by itself: methods as they are called, properties by their names."""
    texts = []
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)
        if name.startswith("_"):
            continue
        if isinstance(member, property):
            texts.append(name)
        elif inspect.isfunction(function):
            texts.append(signature(function, name))
    return texts


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_method_of_a_class_is_in_its_section(cls: type) -> None:
    is_of_table = issubclass(emberlake.Table, cls)  # what a table is made of
    section = section_of(PAGE, "Table" if is_of_table else cls.__name__)

    assert [text for text in public_members(cls) if f"`{text}`" not in section] == []


def test_the_short_reads_of_a_system_table_are_in_its_section() -> None:
    section = section_of(PAGE, "SystemTable")

    assert [text for text in public_members(ShortReads) if f"`{text}`" not in section] == []


def test_every_exported_name_is_in_the_reference() -> None:
    names = {*emberlake.__all__, *emberlake.spark.__all__}

    assert [name for name in sorted(names) if f"`{name}`" not in TEXT] == []


@pytest.mark.parametrize("cls", CONSTRUCTORS, ids=lambda cls: cls.__name__)
def test_what_users_make_is_shown_as_it_is_made(cls: type) -> None:
    assert f"`{signature(cls, cls.__name__)}`" in TEXT


@pytest.mark.parametrize("name", sorted({*emberlake.spark.__all__} - {"Lake", "SparkWriteResult"}))
def test_functions_for_spark_are_in_their_section(name: str) -> None:
    assert f"`{signature(getattr(emberlake.spark, name), name)}`" in section_of(PAGE, "Spark")


@pytest.mark.parametrize(
    "cls",
    [CommitResult, SparkWriteResult, Database, Partition, PagedList, GetTagResponse],
    ids=lambda cls: cls.__name__,
)
def test_every_field_of_a_result_is_named(cls: type) -> None:
    section = section_of(PAGE, "Results") + section_of(PAGE, "Catalog")

    assert [field.name for field in fields(cls) if f"`{field.name}`" not in section] == []


def test_every_error_and_reason_is_in_the_reference() -> None:
    section = section_of(PAGE, "Errors")
    names = [
        *(
            name
            for name, value in vars(errors).items()
            if getattr(value, "__module__", None) == errors.__name__
            and inspect.isclass(value)
            and not name.startswith("_")
        ),
        *errors.ConflictReason.__members__,
    ]

    assert [name for name in names if f"`{name}`" not in section] == []


def test_every_option_is_in_the_reference() -> None:
    section = section_of(PAGE, "Table options")

    named = {name for line in section.split("\n") for name in re.findall("`([^`]+)`", line)}
    assert [option.key for option in KNOWN if option.key not in named] == []
