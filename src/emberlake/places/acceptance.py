"""Whether messages can be one commit, if a key is unique over all partitions."""

from collections.abc import Sequence
from functools import cache, partial

from emberlake.commit.key_bounds import stored_key_bound
from emberlake.errors import CommitConflict, ConflictReason
from emberlake.merge.order import KeyBound
from emberlake.store.table_store import TableStore
from emberlake.wire import CommitMessage


def check_placed_together(store: TableStore, messages: Sequence[CommitMessage]) -> None:
    """Refuse messages of writers that did not know of each other and may have written one key.

    Each would have put its row where it saw fit, and the key would be in the table twice.

    Raises:
        CommitConflict: their key ranges overlap.
    """
    written = [message for message in messages if message.new_files]
    if len({message.placed_by for message in written}) < 2:
        return
    bound_of = cache(partial(stored_key_bound, store))
    ranges = sorted(
        (bound_of(f.min_key), bound_of(f.max_key), m.placed_by or "", f.file_name)
        for m in written
        for f in m.new_files
    )
    highest: dict[str, KeyBound] = {}  # the greatest key of each writer so far
    for least, greatest, writer, name in ranges:
        if any(least <= bound for other, bound in highest.items() if other != writer):
            raise CommitConflict(
                ConflictReason.KEY_INDEX_CHANGED,
                f"several writers wrote keys that overlap, among them those of {name}; a key of "
                "this table is unique over all partitions",
                "let one writer write all rows, or use emberlake.spark.write_paimon, which brings "
                "the rows of a key together",
            )
        highest[writer] = max(greatest, highest.get(writer, greatest))
