"""``saveAsTable`` of a DataFrame, for the names of attached lakes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import DataFrame

from emberlake.datasource.options import CREATE, PATH, SourceOptions, Use, parse_options
from emberlake.errors import InvalidInput, Unsupported
from emberlake.jobs import write_paimon
from emberlake.spec.identifier import Identifier
from emberlake.sql.on_spark.attached import AttachedTables

_FORMAT: Final = "emberlake"
_OVERWRITE: Final = "overwrite"
_WHOLE_TABLE: Final = "all"
_WRITES_TO_EXISTING: Final = ("append", _OVERWRITE)


@dataclass(frozen=True)
class Save:
    """What a writer of a DataFrame was told."""

    frame: DataFrame
    source: str
    mode: str  # append, overwrite, error or ignore
    options: Mapping[str, str] = field(repr=False)  # keys in lower case; may hold tokens
    partition_by: tuple[str, ...] = ()
    is_arranged: bool = False  # bucketBy, sortBy or clusterBy was called

    @property
    def is_of_emberlake(self) -> bool:
        return self.source.lower() == _FORMAT


@dataclass(frozen=True)
class Claim:
    """The table of an attached lake that a name in Spark stands for, or would stand for."""

    identifier: Identifier
    tables: AttachedTables

    @property
    def is_in_spark(self) -> bool:
        """Whether the name is that of the table now."""
        return self.tables.is_in_spark(self.identifier)

    @property
    def is_name_of_another(self) -> bool:
        """Whether Spark has the name for a table of its own, or of another lake."""
        return self.tables.is_name_of_another(self.identifier)


def chosen(save: Save, claims: Sequence[Claim]) -> Claim | None:
    """The table that a save goes to; None leaves it to Spark.

    Args:
        save: What the writer was told.
        claims: One for each lake that can have the name; where nothing else decides, the first.

    Raises:
        Unsupported: Spark would drop a name to overwrite it, or the options contradict the name.
    """
    if not (claims and (save.is_of_emberlake or save.mode in _WRITES_TO_EXISTING)):
        return None
    identifier = claims[0].identifier
    owner = next((claim for claim in claims if claim.is_in_spark), None)
    if not save.is_of_emberlake:
        if owner is not None:
            raise Unsupported(_of_another_format(save, owner))
        return None
    if owner is None and claims[0].is_name_of_another:
        if save.mode == _OVERWRITE:
            raise Unsupported(
                f"{identifier} is a table or view of Spark, not of the lake, and Spark would drop "
                "it to overwrite it: drop it yourself, or save under another name"
            )
        return None
    options = _parsed(save, identifier)
    possible = [
        claim
        for claim in ([owner] if owner is not None else claims)
        if claim.tables.is_at(options.catalog)
    ]
    if not possible:
        raise Unsupported(
            f"the options name another catalog than the lake that is attached: attach that one, "
            f'or write to it with save("{identifier}")'
        )
    if len(possible) == 1:
        return possible[0]
    homes = (claim for claim in possible if claim.tables.has_database(claim.identifier.database))
    return next(homes, possible[0])


def _of_another_format(save: Save, owner: Claim) -> str:
    if save.mode == _OVERWRITE:
        return (
            f"{owner.identifier} is a table of the lake, and Spark would give its name to a table "
            'of its own: add format("emberlake") to replace the rows of the table of the lake'
        )
    return (
        f"{owner.identifier} is a table of the lake, and the format of the writer is "
        f'{save.source}: add format("emberlake")'
    )


def save_in_lake(save: Save, claim: Claim) -> None:
    """Write the rows to a table of the lake, which is created if it does not exist.

    Raises:
        Unsupported: the writer was told to arrange the rows as only Spark's own tables are.
        InvalidInput: the table exists, and lacks options of the writer.
        EmberlakeError: all that ``write_paimon`` raises.
    """
    if save.is_arranged:
        raise Unsupported(
            "bucketBy, sortBy and clusterBy are for tables of Spark: the options bucket and "
            "bucket-key give a table of the lake its buckets"
        )
    identifier = claim.tables.spelled(claim.identifier)
    options = _parsed(save, identifier)
    if save.mode in _WRITES_TO_EXISTING:
        _check_has(identifier, claim.tables.options_of(identifier), options.table)
    write_paimon(
        save.frame,
        identifier,
        claim.tables.catalog_options,
        mode=save.mode,
        create=True,
        primary_keys=options.primary_keys,
        partition_by=save.partition_by or options.partition_by,
        table_options=options.table or None,
        merge_schema=options.merge_schema,
        overwrite=_WHOLE_TABLE if save.mode == _OVERWRITE else False,
        on_bad_rows=options.on_bad_rows or "fail",
    )
    claim.tables.follow(identifier)


def _check_has(
    identifier: Identifier, has: Mapping[str, str] | None, described: Mapping[str, str]
) -> None:
    """Refuse options of a new table that the existing one lacks: they would have no effect."""
    if has is None:
        return
    lacking = [f"{key}={text}" for key, text in described.items() if has.get(key) != text]
    if lacking:
        raise InvalidInput(
            f"{identifier} exists without {', '.join(lacking)}: ALTER TABLE changes its "
            f'options, and save("{identifier}") takes options for one write'
        )


def _parsed(save: Save, identifier: Identifier) -> SourceOptions:
    if PATH in save.options:
        raise Unsupported(
            f"saveAsTable names the table by itself, {identifier}: leave out the option path, "
            f'or write to the table at the path with save("{save.options[PATH]}")'
        )
    told = {**save.options, PATH: str(identifier), CREATE: "true"}
    return parse_options(told, Use.BATCH_WRITE)
