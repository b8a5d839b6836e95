"""Writers that really run at the same time, on a real disk."""

from concurrent.futures import ThreadPoolExecutor

from builders import COLUMNS, append, rows_of
from emberlake import CatalogFactory, Schema
from emberlake.commit.change import CommitResult
from table_reads import check_whole, manifest_files, referenced_manifests

WRITERS, COMMITS = 4, 6
# Manifests are merged at nearly every commit, and nobody gives up.
EAGER = {"manifest.merge-min-count": "2", "commit.max-retries": "1000"}


def test_commits_of_many_writers_all_land_once(tmp_path):
    options = {"warehouse": str(tmp_path)}
    catalog = CatalogFactory.create(options)
    catalog.create_database("db")
    catalog.create_table("db.t", Schema.from_pyarrow_schema(COLUMNS, options=EAGER))

    def write(writer: int) -> list[CommitResult]:
        table = CatalogFactory.create(options).get_table("db.t")
        ids = range(writer * COMMITS, (writer + 1) * COMMITS)
        return [append(table, rows_of([n])) for n in ids]

    with ThreadPoolExecutor(WRITERS) as pool:
        results = [result for done in pool.map(write, range(WRITERS)) for result in done]

    table = catalog.get_table("db.t")
    builder = table.new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
    assert sorted(rows.column("id").to_pylist()) == list(range(WRITERS * COMMITS))
    assert sorted(r.snapshot_id for r in results) == list(range(1, WRITERS * COMMITS + 1))
    check_whole(table)
    assert manifest_files(table) == referenced_manifests(table)
