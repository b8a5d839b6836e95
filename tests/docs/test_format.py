"""The reference of the format: cited headings exist, and stated bytes are right."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyroaring import BitMap, BitMap64

from docs.pages import DOCS, ROOT, name_of, prose_of, section_of
from emberlake.base.hashing import murmur3
from emberlake.compaction.picking import PickingRules, pick_universal
from emberlake.errors import DataMismatch
from emberlake.formats import open_writer
from emberlake.formats.avro_values import avro_schema
from emberlake.formats.int96 import INT96, from_int96, to_int96
from emberlake.inspect.tables import SYSTEM_TABLES
from emberlake.io.memory import MemoryStorage
from emberlake.maintenance.expire import Retention, first_to_leave, first_to_retain
from emberlake.maintenance.holders import stored_name
from emberlake.merge.fold import fold
from emberlake.merge.order import key_bound, order_rows
from emberlake.options import BucketFunction, TableOptions
from emberlake.scan.runs import find_sections
from emberlake.scan.splits import pack
from emberlake.spec.binary_row import decode_row, encode_row, encode_row_body
from emberlake.spec.bucket import bucket_of
from emberlake.spec.deletion_vector import decode_deletion_vector, encode_deletion_vectors
from emberlake.spec.external_paths import entropy_folders, plain_uri
from emberlake.spec.key_value import KIND, SEQUENCE, RowKind, key_value_fields
from emberlake.spec.manifest import DataFile
from emberlake.spec.partition import partition_path, partition_spec
from emberlake.spec.row_columns import hash_rows
from emberlake.spec.schema import TableSchema, decode_table_schema
from emberlake.spec.snapshot import decode_snapshot
from emberlake.spec.stats import FULL, StatsCollector, truncate_max, truncate_min
from emberlake.spec.values import to_arrow_array
from emberlake.spec.widening import is_widening
from emberlake.store.manifest_schemas import (
    INDEX_MANIFEST_SCHEMA,
    MANIFEST_LIST_SCHEMA,
    MANIFEST_SCHEMA,
)
from emberlake.types import AtomicType, DataField, arrow_type
from emberlake.types.json import type_to_json
from format_vectors import Vector, type_of, types_of, value_of, values_of, vectors
from merge_tables import plan_of, records, schema_of

PAGES = sorted((DOCS / "format").glob("*.md"))
SOURCES = sorted((ROOT / "src").rglob("*.py"))
# A citation may go on in the next line, of a docstring or of a comment.
CITATION = re.compile(r'\bSpec: ("[^"]+"(?:(?:,| and)\s+(?:# )?"[^"]+")*)')
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
JSON_BLOCK = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# --- citations ------------------------------------------------------------------------------------


def headings() -> list[str]:
    return [heading for page in PAGES for heading in HEADING.findall(prose_of(page))]


def citations(source: Path) -> list[str]:
    found = CITATION.findall(source.read_text(encoding="utf-8"))
    quoted = [text for cited in found for text in re.findall(r'"([^"]+)"', cited)]
    return [re.sub(r"\s+(?:# )?", " ", text) for text in quoted]


def test_every_citation_names_a_heading() -> None:
    known = set(headings())

    unknown = [(name_of(s), c) for s in SOURCES for c in citations(s) if c not in known]

    assert unknown == []


def test_citations_are_found_at_all() -> None:
    assert sum(len(citations(source)) for source in SOURCES) > 80


def test_a_citation_has_one_form() -> None:
    quoting = re.compile(r"\b[Ss]pec(?:ification)?:? \"")
    texts = {name_of(source): source.read_text(encoding="utf-8") for source in SOURCES}

    odd = [n for n, t in texts.items() if len(quoting.findall(t)) != len(CITATION.findall(t))]

    assert odd == []


def test_no_heading_is_there_twice() -> None:
    assert [heading for heading, count in Counter(headings()).items() if count > 1] == []


def test_layers_have_names_not_numbers() -> None:
    numbered = re.compile(r"\blayer \d", re.IGNORECASE)

    assert [name_of(s) for s in SOURCES if numbered.search(s.read_text(encoding="utf-8"))] == []


# --- whole files ----------------------------------------------------------------------------------


def json_of(page: str, heading: str) -> list[Any]:
    blocks = JSON_BLOCK.findall(section_of(DOCS / "format" / page, heading))
    return [json.loads(block) for block in blocks]


def test_the_avro_schemas_are_those_that_are_written() -> None:
    written = (MANIFEST_LIST_SCHEMA, MANIFEST_SCHEMA, INDEX_MANIFEST_SCHEMA)

    assert json_of("manifests.md", "Avro schemas") == [json.loads(schema) for schema in written]


def test_the_schema_file_is_read_and_written_again() -> None:
    (shown,) = json_of("schema.md", "Schema files")

    schema = decode_table_schema(json.dumps(shown).encode(), "schema-0")

    assert json.loads(schema.encode()) == shown


def test_the_snapshot_is_read_and_written_again() -> None:
    (shown,) = json_of("snapshot.md", "Snapshot JSON")

    snapshot = decode_snapshot(json.dumps(shown).encode(), "snapshot-2")

    assert json.loads(snapshot.encode()) == shown
    assert list(snapshot.to_json()) == list(shown)


def test_the_row_with_many_columns_has_its_hash() -> None:
    page = (DOCS / "format" / "binary-rows.md").read_text(encoding="utf-8")

    body = encode_row_body([AtomicType("INT")] * 57, [0] * 57)

    assert f"the hash {murmur3(body)}." in page


# --- vectors --------------------------------------------------------------------------------------


def loaded(vector: Vector, *names: str) -> list[Any]:
    return [json.loads(vector[name]) for name in names]


def check_binary_row(v: Vector) -> None:
    types, raw = types_of(v["types"]), bytes.fromhex(v["bytes"])
    values = values_of(types, v["values"])

    assert encode_row(types, values) == raw
    assert decode_row(types, raw) == values
    assert murmur3(raw[4:]) == int(v["hash"])
    for count, bucket in zip((2, 4, 10), json.loads(v["buckets"]), strict=True):
        assert abs(int(v["hash"])) % count == bucket


def check_decoded_row(v: Vector) -> None:
    types = types_of(v["types"])

    assert decode_row(types, bytes.fromhex(v["bytes"])) == values_of(types, v["values"])


def check_nested_row(v: Vector) -> None:
    data_type = type_of(v["type"])

    body = encode_row_body([data_type], [value_of(data_type, json.loads(v["value"]))])

    length = int.from_bytes(body[8:12], "little")
    assert body[16 : 16 + length].hex() == v["bytes"]


def check_order(v: Vector) -> None:
    data_type = type_of(v["type"])
    ascending = [value_of(data_type, value) for value in json.loads(v["ascending"])]
    bounds = [key_bound([value]) for value in ascending]
    count = len(ascending)
    turned = pa.table({
        "k": to_arrow_array(data_type, ascending[::-1]),
        SEQUENCE: pa.array([0] * count, pa.int64()),
        KIND: pa.array([0] * count, pa.int8()),
    })  # fmt: skip

    assert all(one < other for one, other in pairwise(bounds))
    assert (
        order_rows(turned, [DataField(0, "k", data_type)], ()).rows.tolist()
        == [*range(count)][::-1]
    )


def check_bucket(v: Vector) -> None:
    types = types_of(v["types"])
    function, count = BucketFunction(v["function"]), int(v["count"])

    assert bucket_of(function, types, values_of(types, v["values"]), count) == int(v["bucket"])


def check_hash_index(v: Vector) -> None:
    types = types_of(v["types"])
    rows = [values_of(types, json.dumps(key)) for key in json.loads(v["keys"])]
    columns = [
        to_arrow_array(t, list(c)) for t, c in zip(types, zip(*rows, strict=True), strict=True)
    ]

    assert hash_rows(types, columns).astype(">i4").tobytes().hex() == v["bytes"]


def check_truncated(v: Vector) -> None:
    data_type = type_of(v["type"])
    value, low, high = (
        None if cell is None else value_of(data_type, cell)
        for cell in loaded(v, "value", "min", "max")
    )

    assert truncate_min(value, int(v["length"])) == low
    assert truncate_max(value, int(v["length"])) == high


def check_bounds(v: Vector) -> None:
    data_type = type_of(v["type"])
    values, low, high = loaded(v, "values", "min", "max")
    collector = StatsCollector([DataField(0, "c", data_type)], [FULL])
    column = to_arrow_array(data_type, [value_of(data_type, value) for value in values])

    collector.update(pa.table({"c": column}))
    stats, _ = collector.finish(dense=False)

    expected = [(value_of(data_type, bound),) for bound in (low, high)]
    assert stats.min_values == encode_row([data_type], expected[0])
    assert stats.max_values == encode_row([data_type], expected[1])
    assert stats.null_counts == (int(v["nulls"]),)


def check_deletion_vector(v: Vector) -> None:
    positions, is_wide = json.loads(v["positions"]), v["bits"] == "64"
    vector = BitMap64(positions) if is_wide else BitMap(positions)

    file, (place,) = encode_deletion_vectors({"f": vector}, bitmap64=is_wide)

    assert file.hex() == "01" + v["blob"]
    assert (place.offset, place.length) == (1, int(v["length"]))
    assert decode_deletion_vector(bytes.fromhex(v["blob"]), int(v["length"])) == vector


def check_partition_text(v: Vector) -> None:
    field = DataField(0, "k", type_of(v["type"]))
    value = value_of(field.type, json.loads(v["value"]))

    for is_legacy, column in ((True, "legacy"), (False, "readable")):
        spec = partition_spec(
            [field], [value], default_name="__DEFAULT_PARTITION__", legacy_name=is_legacy
        )
        assert spec == {"k": v[column]}


def check_partition_path(v: Vector) -> None:
    names = v["keys"].split("; ")
    keys = [DataField(place, name, AtomicType("STRING")) for place, name in enumerate(names)]

    path = partition_path(
        keys, json.loads(v["values"]), default_name="__DEFAULT_PARTITION__", legacy_name=True
    )

    assert path == v["path"]


def check_stored_name(v: Vector) -> None:
    assert stored_name(v["name"]) == (json.loads(v["bucket"]), v["stored"])


def check_entropy_folders(v: Vector) -> None:
    assert entropy_folders(v["name"]) == v["folders"]


def check_java_path(v: Vector) -> None:
    assert plain_uri(v["text"]) == v["path"]


def check_row_kind(v: Vector) -> None:
    kind = RowKind.parse(v["symbol"])

    assert (int(kind), kind.is_retract) == (int(v["code"]), json.loads(v["retracts"]))


def check_type(v: Vector) -> None:
    printed = json.loads(v["printed"]) if v["printed"].startswith("{") else v["printed"]

    assert type_to_json(type_of(v["read"])) == printed


def check_system_field(v: Vector) -> None:
    schema = TableSchema(0, (DataField(5, "id", AtomicType("INT")),), 5, (), ("id",))
    ids = {field.name: field.id for field in key_value_fields(schema)}

    assert ids[v["name"].partition(",")[0]] == int(v["id"])


def check_widening(v: Vector) -> None:
    assert is_widening(type_of(v["old"]), type_of(v["new"])) is json.loads(v["widens"])


def check_sections(v: Vector) -> None:
    ranges, expected = loaded(v, "ranges", "sections")
    bounds = [(key_bound([least]), key_bound([greatest])) for least, greatest in ranges]

    found = [[list(run) for run in section] for section in find_sections(bounds)]

    assert found == expected


def check_merge(v: Vector) -> None:
    options, columns, rows, expected = loaded(v, "options", "columns", "records", "result")
    plan = plan_of(columns, ["k"], options)
    table = records(plan, [row[1:] for row in rows], " ".join(row[0] for row in rows))

    if expected == "error":
        with pytest.raises(DataMismatch):
            fold(plan, table, keep_deletes=False)
        return
    merged = fold(plan, table, keep_deletes=False).drop_columns([SEQUENCE]).to_pylist()
    shown = [[RowKind(row[KIND]).symbol, *(row[name] for name in columns)] for row in merged]
    assert shown == ([] if expected is None else [expected])


def check_pick(v: Vector) -> None:
    options, runs, expected = loaded(v, "options", "runs", "picked")
    files = [
        DataFile(
            file_name=str(place),
            file_size=size,
            row_count=size,
            min_sequence_number=len(runs) - place,
            max_sequence_number=len(runs) - place,
            schema_id=0,
            level=level,
        )
        for place, (level, size) in enumerate(runs)
    ]

    pick = pick_universal(files, PickingRules.of(schema_of({"k": "INT"}, ["k"], options)))

    assert (None if pick is None else [len(pick.files), pick.output_level]) == expected


def check_pack(v: Vector) -> None:
    weights, target, expected = loaded(v, "weights", "target", "splits")
    ends = [len(weights)] if weights else []

    found = pack(np.array(weights, np.int64), np.array(ends, np.int64), target)

    assert [list(split) for split in found] == expected


def check_expire(v: Vector) -> None:
    earliest, latest, consumer = loaded(v, "earliest", "latest", "consumer")
    retention = Retention(
        at_least=int(v["min"]),
        at_most=int(v["max"]),
        older_than_ms=int(v["older_than"]),
        limit=int(v["limit"]),
    )

    ids = range(earliest, latest + 1)
    due = first_to_retain(ids, retention, lambda n: n, consumer)
    first = first_to_leave(ids, due, retention.limit)

    assert first == int(v["first"])


def check_system_table(v: Vector) -> None:
    assert [f.name for f in SYSTEM_TABLES[v["name"]].fields] == v["columns"].split(", ")


def check_parquet(v: Vector) -> None:
    fields = (DataField(7, "c", type_of(v["type"])),)
    storage = MemoryStorage()
    writer = open_writer(storage, "/f.parquet", fields, TableOptions(), "parquet")
    writer.write(pa.table({"c": pa.nulls(1, arrow_type(fields[0].type))}))
    writer.close()

    column = pq.ParquetFile(pa.BufferReader(storage.read("/f.parquet"))).schema.column(0)

    length = f"({column.length})" if column.physical_type == "FIXED_LEN_BYTE_ARRAY" else ""
    annotation = str(column.logical_type).partition(", is_from_converted")[0].rstrip(")")
    assert column.physical_type + length == v["physical"]
    assert annotation == v["annotation"].rstrip(")")


def check_int96(v: Vector) -> None:
    instants, raw = pa.array([int(v["nanoseconds"])], pa.timestamp("ns")), bytes.fromhex(v["bytes"])

    assert from_int96(pa.array([raw], INT96), instants.type) == instants
    assert (to_int96(instants)[0].as_py() == raw) is json.loads(v["written"])


def check_avro(v: Vector) -> None:
    (field,) = avro_schema((DataField(0, "c", type_of(v["type"])),))["fields"]

    assert field["type"] == json.loads(v["schema"])


CHECKS: Mapping[str, Callable[[Vector], None]] = {
    name.removeprefix("check_").replace("_", "-"): check
    for name, check in list(globals().items())
    if name.startswith("check_")
}


@pytest.mark.parametrize(
    ("kind", "vector"),
    [
        pytest.param(kind, vector, id=f"{kind}: {' | '.join(vector.values())[:60]}")
        for kind, found in vectors().items()
        for vector in found
    ],
)
def test_the_code_does_what_a_vector_says(kind: str, vector: Vector) -> None:
    CHECKS[kind](vector)


def test_every_kind_of_vectors_is_checked_and_every_check_has_vectors() -> None:
    assert set(vectors()) == set(CHECKS)
