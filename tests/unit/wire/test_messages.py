"""Commit messages and their byte form."""

import json
import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import create_table, prepare, rows_of
from effort import examples
from emberlake.errors import InvalidInput, Unsupported
from emberlake.spec.manifest import (
    DataFile,
    DeletionVectorRange,
    FileSource,
    GlobalIndex,
    IndexFile,
    SimpleStats,
)
from emberlake.wire import BaseSnapshot, CommitMessage, WriteMode

LONG = st.integers(-(2**63), 2**63 - 1)
NAME = st.text(st.characters(codec="utf-8"), max_size=8)
BYTES = st.binary(max_size=12)


def maybe(strategy):
    return st.none() | strategy


def tuples(strategy):
    return st.lists(strategy, max_size=2).map(tuple)


STATS = st.builds(SimpleStats, BYTES, BYTES, maybe(tuples(maybe(LONG))))
FILES = tuples(
    st.builds(
        DataFile,
        file_name=NAME,
        file_size=LONG,
        row_count=LONG,
        min_key=BYTES,
        max_key=BYTES,
        key_stats=STATS,
        value_stats=STATS,
        min_sequence_number=LONG,
        max_sequence_number=LONG,
        schema_id=LONG,
        level=LONG,
        extra_files=tuples(NAME),
        creation_time=maybe(LONG),
        delete_row_count=maybe(LONG),
        embedded_file_index=maybe(BYTES),
        file_source=maybe(st.sampled_from(FileSource)),
        value_stats_cols=maybe(tuples(NAME)),
        external_path=maybe(NAME),
        first_row_id=maybe(LONG),
        write_cols=maybe(tuples(NAME)),
        write_cols_sequences=maybe(tuples(LONG)),
    )
)
GLOBAL_INDEXES = st.builds(
    GlobalIndex,
    row_range_start=LONG,
    row_range_end=LONG,
    index_field_id=LONG,
    extra_field_ids=maybe(tuples(LONG)),
    index_meta=maybe(BYTES),
    source_meta=maybe(BYTES),
)
INDEX_FILES = tuples(
    st.builds(
        IndexFile,
        index_type=NAME,
        file_name=NAME,
        file_size=LONG,
        row_count=LONG,
        deletion_vectors=maybe(
            tuples(st.builds(DeletionVectorRange, NAME, LONG, LONG, maybe(LONG)))
        ),
        external_path=maybe(NAME),
        global_index=maybe(GLOBAL_INDEXES),
    )
)
MESSAGES = st.builds(
    CommitMessage,
    table=NAME,
    mode=st.sampled_from(WriteMode),
    partition=BYTES,
    bucket=LONG,
    total_buckets=LONG,
    new_files=FILES,
    deleted_files=FILES,
    changelog_files=FILES,
    new_index_files=INDEX_FILES,
    deleted_index_files=INDEX_FILES,
    compact_before=FILES,
    compact_after=FILES,
    compact_changelog_files=FILES,
    base=maybe(st.builds(BaseSnapshot, LONG, NAME)),
)

FILE = DataFile(
    file_name="data-1-0.parquet",
    file_size=1000,
    row_count=10,
    value_stats=SimpleStats(b"\x00\x01", b"\x00\xff", (0, None)),
    min_sequence_number=0,
    max_sequence_number=9,
    schema_id=2,
    creation_time=1_750_000_000_000,
    value_stats_cols=("id", "größe"),
)
MESSAGE = CommitMessage(
    table="/warehouse/db.db/größen",
    mode=WriteMode.OVERWRITE,
    partition=b"\x00\x00\x00\x01p",
    bucket=3,
    total_buckets=4,
    new_files=(FILE,),
    base=BaseSnapshot(7, "manifest-list-7"),
)

# What version 2 looks like. Bytes like these may be on their way between processes of different
# releases: do not change them, add a version.
GOLDEN = (
    b'EMBM\x02{"table":"/warehouse/db.db/gr\xc3\xb6\xc3\x9fen","mode":"overwrite",'
    b'"partition":"AAAAAXA=","bucket":3,"total_buckets":4,"new_files":['
    b'{"file_name":"data-1-0.parquet","file_size":1000,"row_count":10,'
    b'"value_stats":{"min_values":"AAE=","max_values":"AP8=","null_counts":[0,null]},'
    b'"min_sequence_number":0,"max_sequence_number":9,"schema_id":2,'
    b'"creation_time":1750000000000,"value_stats_cols":["id","gr\xc3\xb6\xc3\x9fe"]}],'
    b'"base":{"id":7,"delta_manifest_list":"manifest-list-7"}}'
)
GOLDEN_DEFAULTS = (
    b'EMBM\x02{"table":"/t","mode":"append","partition":"","bucket":0,"total_buckets":-1,'
    b'"new_files":[{"file_name":"f",'
    b'"file_size":1,"row_count":1,"min_sequence_number":0,"max_sequence_number":0,"schema_id":0}]}'
)


@examples(50)
@given(MESSAGES)
def test_every_message_survives_its_byte_form_and_pickling(message):
    assert CommitMessage.from_bytes(message.to_bytes()) == message
    assert pickle.loads(pickle.dumps(message)) == message


def test_the_byte_form_does_not_change():
    assert MESSAGE.to_bytes() == GOLDEN
    assert CommitMessage.from_bytes(GOLDEN) == MESSAGE


def test_what_is_left_out_keeps_its_meaning():
    (file,) = CommitMessage.from_bytes(GOLDEN_DEFAULTS).new_files

    assert (file.level, file.delete_row_count, file.extra_files) == (0, 0, ())
    assert file.file_source is FileSource.APPEND
    assert file.value_stats == SimpleStats(bytes(12), bytes(12), ())
    assert (file.value_stats_cols, file.external_path, file.first_row_id) == (None, None, None)


def test_keys_that_are_not_known_are_ignored_at_every_depth():
    value = json.loads(GOLDEN[5:])
    value["later"] = {"x": [1]}
    value["new_files"][0]["later"] = 1
    value["new_files"][0]["value_stats"]["later"] = None

    assert CommitMessage.from_bytes(GOLDEN[:5] + json.dumps(value).encode()) == MESSAGE


@pytest.mark.parametrize("version", [0, 1, 255])
def test_a_version_that_is_not_known_is_refused(version):
    raw = GOLDEN[:4] + bytes([version]) + GOLDEN[5:]

    with pytest.raises(Unsupported, match=f"version {version}"):
        CommitMessage.from_bytes(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"EMBM",
        b"PAR1\x02{}",
        pickle.dumps(MESSAGE),
        GOLDEN[:-1],
        b"EMBM\x02",
        b"EMBM\x02[]",
        b"EMBM\x02null",
        b"EMBM\x02{}",
        b"EMBM\x02\xff\xfe",
        GOLDEN.replace(b'"AAAAAXA="', b'"?!"'),
        GOLDEN.replace(b'"AAAAAXA="', b"5"),
        GOLDEN.replace(b'"bucket":3', b'"bucket":"3"'),
        GOLDEN.replace(b'"bucket":3', b'"bucket":true'),
        GOLDEN.replace(b'"bucket":3', b'"bucket":null'),
        GOLDEN.replace(b'"table":"/ware', b'"tables":"/ware'),
        GOLDEN.replace(b'"overwrite"', b'"upsert"'),
        GOLDEN.replace(b'"overwrite"', b"1"),
        GOLDEN.replace(b'["id"', b"[7"),
        GOLDEN.replace(b"[0,null]", b"{}"),
        GOLDEN_DEFAULTS.replace(b'"schema_id":0', b'"schema_id":0,"file_source":9'),
        GOLDEN_DEFAULTS.replace(b'"file_name":"f",', b""),
    ],
)
def test_bytes_that_are_no_message_are_refused(raw):
    with pytest.raises(InvalidInput, match="not a commit message"):
        CommitMessage.from_bytes(raw)


def test_messages_of_a_write_cross_processes():
    messages = prepare(create_table(), rows_of([1, 2, 3]))

    again = [CommitMessage.from_bytes(m.to_bytes()) for m in messages]

    assert again == messages
    assert sum(m.row_count for m in again) == 3


def test_a_message_knows_what_it_holds():
    place = {"table": "/t", "partition": b"", "bucket": 0, "total_buckets": -1}
    place["mode"] = WriteMode.APPEND
    empty = CommitMessage(**place, base=BaseSnapshot(1, "l"))
    compacted = CommitMessage(**place, compact_after=(FILE,))
    upgraded = CommitMessage(
        **place, compact_before=(FILE,), compact_after=(replace(FILE, level=5),)
    )

    assert empty.is_empty()
    assert not MESSAGE.is_empty()
    assert not compacted.is_empty()
    assert MESSAGE.written_files == (FILE,)
    assert compacted.written_files == (FILE,)
    assert upgraded.written_files == ()
    assert (MESSAGE.row_count, compacted.row_count) == (10, 0)
