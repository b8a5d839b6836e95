"""Manifests keep what they are given; ADD and DELETE resolve as a plain model says."""

import io
import itertools
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from emberlake.base.avro_blocks import Container, parse_container
from emberlake.io import MemoryStorage
from emberlake.spec.layout import TableLayout
from emberlake.spec.manifest import DataFile, FileKind, FileSource, ManifestEntry, SimpleStats
from emberlake.store.avro_container import _plain_schema
from emberlake.store.avro_lanes import decode_lanes
from emberlake.store.entries import ManifestEntries, compact_entries, merge_entries
from emberlake.store.manifest_avro import decode_entries, encode_entry
from emberlake.store.manifests import ManifestStore

INTS = st.integers(-(2**31), 2**31 - 1)
LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
BYTES = st.binary(max_size=8)


def tuples(items: st.SearchStrategy) -> st.SearchStrategy:
    return (st.lists(items, max_size=3) | st.lists(items, min_size=5, max_size=7)).map(tuple)


STATS = st.builds(SimpleStats, BYTES, BYTES, st.none() | tuples(st.none() | LONGS))
FILES = st.builds(
    DataFile,
    file_name=TEXTS,
    file_size=LONGS,
    row_count=LONGS,
    min_key=BYTES,
    max_key=BYTES,
    key_stats=STATS,
    value_stats=STATS,
    min_sequence_number=LONGS,
    max_sequence_number=LONGS,
    schema_id=LONGS,
    level=INTS,
    extra_files=tuples(TEXTS),
    creation_time=st.none() | LONGS,
    delete_row_count=st.none() | LONGS,
    embedded_file_index=st.none() | BYTES,
    file_source=st.none() | st.sampled_from(FileSource),
    value_stats_cols=st.none() | tuples(TEXTS),
    external_path=st.none() | TEXTS,
    first_row_id=st.none() | LONGS,
    write_cols=st.none() | tuples(TEXTS),
    write_cols_sequences=st.none() | tuples(LONGS),
)
ENTRIES = st.builds(
    ManifestEntry,
    kind=st.sampled_from(FileKind),
    partition=BYTES,
    bucket=INTS,
    total_buckets=INTS,
    file=FILES,
)


@given(st.lists(ENTRIES, max_size=5))
def test_entries_survive_columns(entries: list[ManifestEntry]) -> None:
    assert ManifestEntries.from_entries(entries).entries() == entries


@given(st.lists(ENTRIES, min_size=1, max_size=5))
def test_entries_survive_a_manifest(entries: list[ManifestEntry]) -> None:
    storage = MemoryStorage()
    store = ManifestStore(storage, TableLayout("t"), new_id=lambda: "id")

    (manifest,) = store.write_manifests(entries, ())

    raw = storage.read(f"t/manifest/{manifest.file_name}")
    assert decode_entries(raw, "m").entries() == entries


@given(st.lists(ENTRIES, min_size=1, max_size=5), st.integers(1, 3))
def test_entries_decoded_side_by_side_are_those_decoded_one_by_one(
    entries: list[ManifestEntry], repeats: int
) -> None:
    storage = MemoryStorage()
    store = ManifestStore(storage, TableLayout("t"), new_id=lambda: "id")
    (manifest,) = store.write_manifests(entries * repeats, ())
    container = parse_container(storage.read(f"t/manifest/{manifest.file_name}"))
    starts = [0]
    for entry in entries * repeats:
        starts.append(starts[-1] + len(encode_entry(entry)))

    def find(*_: object) -> npt.NDArray[np.int64]:
        return np.array(starts[:-1])

    records = decode_lanes(container, _plain_schema(container.schema), RECORD, find)

    assert records is not None
    assert records.to_pylist() == pa.array(one_by_one(container), RECORD).to_pylist()


RECORD = pa.struct(
    [
        ("_KIND", pa.int32()),
        ("_PARTITION", pa.large_binary()),
        (
            "_FILE",
            pa.struct(
                [
                    ("_FILE_NAME", pa.large_string()),
                    ("_VALUE_STATS", pa.struct([("_NULL_COUNTS", pa.large_list(pa.int64()))])),
                    ("_EXTRA_FILES", pa.large_list(pa.large_string())),
                    ("_EMBEDDED_FILE_INDEX", pa.large_binary()),
                    ("_VALUE_STATS_COLS", pa.large_list(pa.large_string())),
                    ("_FIRST_ROW_ID", pa.int64()),
                    ("_WRITE_COLS_SEQUENCES", pa.large_list(pa.int64())),
                    ("_LATER", pa.int64()),
                ]
            ),
        ),
    ]
)


def one_by_one(container: Container) -> list[dict[str, Any]]:
    schema = fastavro.parse_schema(_plain_schema(container.schema))
    source = io.BytesIO(b"".join(block.data for block in container.blocks))
    return [fastavro.schemaless_reader(source, schema, None) for _ in range(container.count)]


def histories() -> st.SearchStrategy[list[ManifestEntry]]:
    """Entries of few files: each is added once and deleted at most once, and never comes back."""
    steps = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 1)), max_size=12)
    return steps.map(_history)


def _history(steps: list[tuple[str, int]]) -> list[ManifestEntry]:
    seen: dict[tuple[str, int], int] = {}
    entries = []
    for name, level in steps:
        times = seen.get((name, level), 0)
        seen[name, level] = times + 1
        if times > 1:
            continue
        file = DataFile(
            file_name=name,
            file_size=1,
            row_count=1,
            min_sequence_number=0,
            max_sequence_number=0,
            schema_id=0,
            level=level,
        )
        kind = FileKind.DELETE if times else FileKind.ADD
        entries.append(
            ManifestEntry(kind=kind, partition=b"", bucket=0, total_buckets=1, file=file)
        )
    return entries


@given(histories(), st.integers(0, 12))
def test_compacting_part_by_part_gives_the_live_files(
    entries: list[ManifestEntry], cut: int
) -> None:
    model: dict[object, ManifestEntry] = {}
    for entry in entries:
        if entry.kind is FileKind.ADD:
            model[entry.identity] = entry
        else:
            del model[entry.identity]

    parts = [
        compact_entries(ManifestEntries.from_entries(part))
        for part in (entries[:cut], entries[cut:])
    ]
    whole = compact_entries(ManifestEntries.concat(parts))

    assert set(whole.entries()) == set(model.values())
    assert merge_entries(ManifestEntries.concat(parts)) == whole


@given(histories())
def test_merging_keeps_adds_that_nothing_deletes(entries: list[ManifestEntry]) -> None:
    deleted = {entry.identity for entry in entries if entry.kind is FileKind.DELETE}
    adds = itertools.filterfalse(lambda entry: entry.kind is FileKind.DELETE, entries)

    live = merge_entries(ManifestEntries.from_entries(entries)).entries()

    assert live == [entry for entry in adds if entry.identity not in deleted]
