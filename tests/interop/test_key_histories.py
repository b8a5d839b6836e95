"""Primary-key tables after random histories, read by the other engines, row for row."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest

from emberlake import CatalogFactory
from interop.engines import OTHERS, READERS
from interop.judges import known_gap
from key_histories import VALUES, History, Record, Shape, random_shape

pytestmark = pytest.mark.interop

NANOSECONDS = ("TIMESTAMP(9)", "TIMESTAMP(9) WITH LOCAL TIME ZONE")


class PlainShape(Shape):
    """Without what pypaimon refuses: deletes other than by key."""

    @property
    def all_options(self) -> dict[str, str]:
        refused = ("ignore-retract", "remove-record-on-delete")
        return {k: v for k, v in super().all_options.items() if not k.endswith(refused)}


class PlainHistory(History):
    """A history without deletes."""

    def _delete(self) -> Record | None:
        return None


class PostponedHistory(History):
    """Every row that is looked at was postponed before."""

    def check(self) -> None:
        self.table.compact(full=self.chance.random() < 0.5)
        super().check()


Told = Callable[..., tuple[Path, History]]


@pytest.fixture(scope="module")
def tell(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Lets a history happen, once for all readers."""

    @cache
    def once(name: str, seed: int) -> tuple[Path, History]:
        warehouse = tmp_path_factory.mktemp("history")
        catalog = CatalogFactory.create({"warehouse": str(warehouse)})
        catalog.create_database("db", True)
        chance = Random(f"{name} {seed}")
        shape = SHAPES.get(name) or _random_shape(name, chance)
        # Nanoseconds have a history of their own, for pypaimon cuts them off.
        kinds = sorted(VALUES) if name == "nanoseconds" else sorted({*VALUES} - {*NANOSECONDS})
        history = _kind_of(shape)(catalog, shape, chance, kinds)
        _happen(history)
        return warehouse, history

    return once


def _happen(history: History) -> None:
    """Everything that can happen, in any order; then something is written."""
    actions = [
        *[history.write] * 3,
        history.write_as_a_stream,
        history.overwrite,
        *[history.change_schema] * 2,
        history.compact,
    ]
    history.chance.shuffle(actions)
    for action in [*actions, history.write]:
        history.done.append(action.__name__)
        action()
        history.check()


def _kind_of(shape: Shape) -> type[History]:
    if isinstance(shape, PlainShape):
        return PlainHistory
    return PostponedHistory if shape.bucket == "-2" else History


# --- shapes that are given ------------------------------------------------------------------------

# The key is unique in each partition, of which it has no column.
BESIDE = Shape(keys=("BIGINT",), value="DATE", partitioned=True, partition_in_key=False)
SHAPES: dict[str, Shape] = {
    "integers": Shape(keys=("INT",), value="DOUBLE", bucket="1"),
    "texts": Shape(keys=("STRING", "BIGINT"), value="DECIMAL(38, 3)", bucket="3"),
    "decimals": Shape(keys=("DECIMAL(38, 3)",), value="BYTES", bucket="2"),
    "nanoseconds": Shape(keys=("TIMESTAMP(9)",), value="TIMESTAMP(9)", bucket="2"),
    "dates": Shape(keys=("DATE",), value="TIMESTAMP(6)", bucket="2", partitioned=True),
    "bytes": Shape(keys=("BYTES",), value="STRING", bucket="2"),
    "dynamic": Shape(keys=("BIGINT",), bucket="-1", options={"dynamic-bucket.target-row-num": "2"}),
    "postponed": Shape(keys=("BIGINT",), bucket="-2", partitioned=True),
    "thin": Shape(keys=("STRING",), value="DATE", options={"data-file.thin-mode": "true"}),
    "sequence": Shape(keys=("INT",), value="STRING", options={"sequence.field": "n"}),
    "partial-update": Shape("partial-update", keys=("INT",), value="DECIMAL(9, 2)"),
    "partial-update, plain": PlainShape("partial-update", keys=("INT",), value="DECIMAL(9, 2)"),
    "aggregation": Shape("aggregation", keys=("STRING",), value="DATE"),
    "aggregation, plain": PlainShape("aggregation", keys=("STRING",), value="DATE"),
    "first-row": Shape("first-row", keys=("INT",), value="BIGINT"),
    "deletion vectors": Shape(
        keys=("INT",), value="STRING", options={"deletion-vectors.enabled": "true"}
    ),
    "partition beside the key": BESIDE,
    "partition beside the key, postponed": replace(BESIDE, bucket="-2"),
    "partition beside the key, deletion vectors": replace(
        BESIDE, options={"deletion-vectors.enabled": "true"}
    ),
    "partition beside the key, first-row": replace(BESIDE, engine="first-row"),
    "partition beside the key, partial-update": PlainShape(
        **vars(replace(BESIDE, engine="partial-update"))
    ),
    "partition beside the key, aggregation": PlainShape(
        **vars(replace(BESIDE, engine="aggregation"))
    ),
}
# What others do not do, or do not do right.
GAPS = {
    ("nanoseconds", "pypaimon"): "pypaimon cuts nanoseconds off when it merges",
    ("partial-update", "pypaimon"): "pypaimon does not know partial-update.remove-record-on-delete",
    ("aggregation", "pypaimon"): "pypaimon does not take values back",
}


@pytest.mark.parametrize("reader", OTHERS)
@pytest.mark.parametrize("name", SHAPES)
def test_others_read_what_a_history_left(
    request: pytest.FixtureRequest, name: str, reader: str, tell: Told
) -> None:
    if (name, reader) in GAPS:
        known_gap(request, GAPS[name, reader])

    warehouse, history = tell(name, 1)

    assert READERS[reader](warehouse) == history.expected(), history.done


# --- shapes by chance -----------------------------------------------------------------------------

ENGINES = ("deduplicate", "partial-update", "aggregation", "first-row")
PLAIN = ("partial-update, plain", "aggregation, plain")
SEEDS = (11, 12, 13)
# To Java before 2.0, 0.0 and -0.0 are one key; neither has it an order of booleans.
IN_ALL_ENGINES = dict.fromkeys(NANOSECONDS, "TIMESTAMP(6)") | {"FLOAT": "INT", "DOUBLE": "BIGINT"}


def _random_shape(name: str, chance: Random) -> Shape:
    engine = name.removeprefix("any ").removesuffix(", plain")
    shape = random_shape(chance, engine)
    keys = tuple(IN_ALL_ENGINES.get(key, key) for key in shape.keys)
    value = {**dict.fromkeys(NANOSECONDS, "TIMESTAMP(6)"), "BOOLEAN": "INT"}.get(shape.value)
    shape = replace(shape, keys=keys, value=value or shape.value)
    return PlainShape(**vars(shape)) if name.endswith("plain") else shape


@pytest.mark.parametrize("reader", OTHERS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [*ENGINES, *PLAIN])
def test_others_read_what_any_history_left(
    request: pytest.FixtureRequest, name: str, seed: int, reader: str, tell: Told
) -> None:
    if (name, reader) in GAPS:
        known_gap(request, GAPS[name, reader])

    warehouse, history = tell(f"any {name}", seed)

    assert READERS[reader](warehouse) == history.expected(), (history.shape, history.done)
