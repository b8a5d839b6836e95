"""Tables whose files lie outside of their folder: everybody finds them by their paths."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from emberlake import Table
from emberlake.scan.files import live_entries
from emberlake.spec.external_paths import external_paths
from interop.engines import (
    COMPACTORS,
    NAME,
    OTHERS,
    READERS,
    WRITERS,
    arrow_rows,
    canonical,
    create,
    open_table,
)
from interop.judges import java_judge

pytestmark = pytest.mark.interop

COLUMNS = {"id": "BIGINT NOT NULL", "name": "STRING"}
PATHS = "data-file.external-paths"
STRATEGIES = {
    "round-robin": {},
    "specific-fs": {f"{PATHS}.specific-fs": "file"},
    "entropy-inject": {},
    "weight-robin": {f"{PATHS}.weights": "1,2"},
}
TABLES: dict[str, dict[str, str]] = {
    "keys": {"bucket": "2"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
    "vectors beside the data": {
        "bucket": "1",
        "deletion-vectors.enabled": "true",
        "index-file-in-data-file-dir": "true",
    },
    "vectors in a folder of their own": {"bucket": "1", "deletion-vectors.enabled": "true"},
}


def create_outside(folder: Path, strategy: str, **options: str) -> Table:
    named = {PATHS: f"file://{folder}/one,file://{folder}/two/", f"{PATHS}.strategy": strategy}
    return create(folder / "home", COLUMNS, **named, **STRATEGIES[strategy], **options)


def rows(table: Table, ids: Sequence[int], name: str) -> pa.Table:
    return arrow_rows(table, [(n, name) for n in ids])


def outside(folder: Path) -> set[str]:
    """The files that the latest snapshot has outside of the table's folder."""
    store = open_table(folder / "home").store
    snapshot = store.snapshots.latest()
    assert snapshot is not None
    paths = [entry.file.external_path for entry in live_entries(store, snapshot).entries()]
    assert all(path is not None and path.startswith(f"file:{folder}/") for path in paths)
    return {path for path in paths if path is not None}


@pytest.mark.parametrize("reader", OTHERS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_others_read_what_we_wrote(strategy: str, reader: str, tmp_path: Path) -> None:
    table = create_outside(tmp_path, strategy, bucket="2")
    for turn in ("a", "b"):
        WRITERS["emberlake"](tmp_path / "home", rows(table, range(turn == "b", 9), turn))

    assert len(outside(tmp_path)) == 4
    expected = [(0, "a"), *((n, "b") for n in range(1, 9))]
    assert READERS[reader](tmp_path / "home") == canonical(table, expected)


@pytest.mark.parametrize("reader", OTHERS)
@pytest.mark.parametrize("kind", TABLES)
def test_others_read_what_we_compacted(kind: str, reader: str, tmp_path: Path) -> None:
    options = dict(TABLES[kind])
    if "own" in kind:
        options["global-index.external-path"] = f"file://{tmp_path}/index"
    table = create_outside(tmp_path, "round-robin", **options)
    WRITERS["emberlake"](tmp_path / "home", rows(table, range(100), "a"))
    COMPACTORS["emberlake"](tmp_path / "home", full=True)
    WRITERS["emberlake"](tmp_path / "home", rows(table, [7], "b"))

    expected = [(n, "b" if n == 7 else "a") for n in range(100)]
    assert READERS[reader](tmp_path / "home") == canonical(table, expected)


@pytest.mark.parametrize("writer", ["java", "pypaimon", "rust"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_we_read_and_compact_what_others_wrote(strategy: str, writer: str, tmp_path: Path) -> None:
    table = create_outside(tmp_path, strategy, bucket="1")
    WRITERS[writer](tmp_path / "home", rows(table, range(9), "a"))
    written = outside(tmp_path)
    WRITERS[writer](tmp_path / "home", rows(table, [7], "b"))

    expected = canonical(table, [(n, "b" if n == 7 else "a") for n in range(9)])
    assert READERS["emberlake"](tmp_path / "home") == expected
    COMPACTORS["emberlake"](tmp_path / "home", full=True)
    assert written.isdisjoint(outside(tmp_path))
    assert READERS["java"](tmp_path / "home") == expected


def test_java_compacts_and_we_expire_what_we_wrote(tmp_path: Path) -> None:
    table = create_outside(tmp_path, "round-robin", bucket="1")
    for turn in ("a", "b"):
        WRITERS["emberlake"](tmp_path / "home", rows(table, range(9), turn))
    COMPACTORS["java"](tmp_path / "home", full=True)
    assert len([*tmp_path.rglob("data-*")]) == 3

    table = open_table(tmp_path / "home")
    table.expire_snapshots(retain_max=1, retain_min=1)

    assert {f"file:{path}" for path in tmp_path.rglob("data-*")} == outside(tmp_path)
    assert READERS["java"](tmp_path / "home") == canonical(table, [(n, "b") for n in range(9)])
    assert table.check().ok


@pytest.mark.parametrize("strategy", ["round-robin", "entropy-inject"])
def test_java_chooses_the_paths_that_we_would(strategy: str, tmp_path: Path) -> None:
    table = create_outside(tmp_path, strategy, bucket="1", **{"data-file.path-directory": "data"})
    java_judge().write(tmp_path / "home", NAME, rows(table, range(9), "a"))

    found = external_paths(table.store.options)
    assert found is not None
    for path in outside(tmp_path):
        name = path.rpartition("/")[2]
        ours = found.chooser("data/bucket-0", lambda: 0.0)
        assert path in {ours(name), ours(name)}
