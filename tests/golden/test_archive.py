"""The archive holds what its index says."""

from golden.reads import Golden, golden_reads


def test_every_read_of_the_index_has_its_rows(golden: Golden) -> None:
    assert {read.file: read.row_count for read in golden_reads()} == {
        read.file: len(golden.expected(read)) for read in golden_reads()
    }
