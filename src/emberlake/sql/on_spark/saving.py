"""``saveAsTable`` of a DataFrame, for the names of an attached lake."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame

from emberlake.datasource.options import CREATE, PATH, SourceOptions, Use, parse_options
from emberlake.errors import Unsupported
from emberlake.jobs import write_paimon
from emberlake.spec.identifier import Identifier
from emberlake.sql.names import TableName
from emberlake.sql.on_spark.attached import AttachedTables

_FORMAT: Final = "emberlake"
_OVERWRITE: Final = "overwrite"
_WHOLE_TABLE: Final = "all"


@dataclass(frozen=True)
class Save:
    """What a writer of a DataFrame was told."""

    frame: DataFrame
    name: TableName  # without the name of Spark's catalog
    source: str | None  # None: Spark's default
    mode: str  # append, overwrite, error or ignore
    options: Mapping[str, str]  # with keys in lower case
    partition_by: tuple[str, ...] = ()
    is_arranged: bool = False  # bucketBy or clusterBy was called

    @property
    def is_of_emberlake(self) -> bool:
        return self.source is not None and self.source.lower() == _FORMAT


def is_for_lake(save: Save, identifier: Identifier, attached: AttachedTables) -> bool:
    """Whether a save is one of a table of the lake; the others are left to Spark.

    Raises:
        Unsupported: Spark would drop the table that has the name now.
    """
    if PATH in save.options or not _is_same_place(save, identifier, attached.catalog_options):
        return False
    is_taken = attached.is_name_of_spark(identifier)
    is_overwritten = save.mode == _OVERWRITE
    if save.is_of_emberlake:
        if is_taken and is_overwritten:
            raise Unsupported(
                f"{identifier} is a table or view of Spark, not of the lake, and Spark would drop "
                "it to overwrite it: drop it yourself, or save under another name"
            )
        return not is_taken
    if is_overwritten and not is_taken and attached.has(identifier):
        raise Unsupported(
            f"{identifier} is a table of the lake, and Spark would give its name to a table of its "
            'own: add format("emberlake") to replace the rows of the table of the lake'
        )
    return False


def _is_same_place(
    save: Save, identifier: Identifier, catalog_options: Mapping[str, object]
) -> bool:
    """Whether options of the writer that say where the catalog is say what the lake says."""
    if not save.is_of_emberlake:
        return True
    given = _parsed(save, identifier).catalog
    return all(str(catalog_options.get(key)) == text for key, text in given.items())


def write_as_table(
    save: Save, identifier: Identifier, catalog_options: Mapping[str, object]
) -> None:
    """Write the rows to a table of the lake, which is created if it does not exist.

    Raises:
        Unsupported: the writer was told to arrange the rows as only Spark's own tables are.
        EmberlakeError: all that ``write_paimon`` raises.
    """
    if save.is_arranged:
        raise Unsupported(
            "bucketBy, sortBy and clusterBy are for tables of Spark: the options bucket and "
            "bucket-key give a table of the lake its buckets"
        )
    options = _parsed(save, identifier)
    write_paimon(
        save.frame,
        identifier,
        catalog_options,
        mode=save.mode,
        create=True,
        primary_keys=options.primary_keys,
        partition_by=save.partition_by or options.partition_by,
        table_options=options.table or None,
        merge_schema=options.merge_schema,
        overwrite=_WHOLE_TABLE if save.mode == _OVERWRITE else False,
        on_bad_rows=options.on_bad_rows or "fail",
    )


def _parsed(save: Save, identifier: Identifier) -> SourceOptions:
    told = {**save.options, PATH: str(identifier), CREATE: "true"}
    return parse_options(told, Use.BATCH_WRITE)
