"""Buckets that are opened as keys arrive: which of them have room for new keys.

New keys go to the first bucket with room; if none has any, a new bucket is opened. Several
assigners can work for one commit, each with its own keys: a new key gets a bucket of its assigner.
``dynamic-bucket.initial-buckets`` limits how many of these assigners share the keys of a partition;
here all of them do.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from emberlake.errors import InvalidInput
from emberlake.options import DYNAMIC_BUCKET_ROWS

Buckets = npt.NDArray[np.int32]

_MAX_BUCKETS: Final = 32_767  # other engines keep bucket numbers in 16 bits


@dataclass(frozen=True, slots=True)
class Assigner:
    """One of several that assign buckets at the same time; its new keys get buckets of its own."""

    number: int = 0
    count: int = 1

    def owns(self, bucket: int) -> bool:
        return bucket % self.count == self.number


SINGLE_ASSIGNER: Final = Assigner()


@dataclass
class BucketRooms:
    """How many keys each bucket of a partition has, and how many it may have.

    Args:
        counts: The keys of each bucket, in the order of the buckets.
        bucket_rows: How many keys a bucket should have at most.
        max_buckets: How many buckets there may be; -1: as many as are needed.
        assigner: Which of several assigners this is.
    """

    counts: dict[int, int]
    bucket_rows: int
    max_buckets: int = -1
    assigner: Assigner = SINGLE_ASSIGNER

    def assign(self, count: int) -> Buckets:
        """Buckets for this many new keys."""
        buckets = np.empty(count, np.int32)
        start = 0
        while start < count:
            bucket, room = self._bucket_with_room(count - start)
            end = min(count, start + room)
            buckets[start:end] = bucket
            self.counts[bucket] = self.counts.get(bucket, 0) + end - start
            start = end
        return buckets

    def _bucket_with_room(self, wanted: int) -> tuple[int, int]:
        own = sorted(filter(self.assigner.owns, self.counts))
        for bucket in own:
            room = self.bucket_rows - self.counts[bucket]
            if room > 0:
                return bucket, room
        limit = self.max_buckets if self.max_buckets > 0 else _MAX_BUCKETS
        new = range(self.assigner.number, limit, self.assigner.count)
        unused = next((bucket for bucket in new if bucket not in self.counts), None)
        if unused is not None:
            return unused, max(1, self.bucket_rows)
        if self.max_buckets <= 0:
            raise InvalidInput(
                f"the partition needs more than {limit} buckets of {self.bucket_rows} keys: "
                f"raise {DYNAMIC_BUCKET_ROWS.key}"
            )
        # All are full: spread the rest evenly over them.
        fewest = min(own, key=lambda b: (self.counts[b], b))
        return fewest, max(1, -(-wanted // len(own)))
