"""The archive holds what its index says."""

from golden.reads import Golden, golden_reads, row_reads


def test_every_read_of_the_index_has_its_rows(golden: Golden) -> None:
    assert {read.file: read.row_count for read in golden_reads()} == {
        read.file: len(golden.expected(read)) for read in golden_reads()
    }


def test_every_read_of_changed_rows_has_its_rows(golden_rows: Golden) -> None:
    assert {read.file: read.row_count for read in row_reads()} == {
        read.file: len(golden_rows.expected(read)) for read in row_reads()
    }
