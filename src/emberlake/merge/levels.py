"""Records on levels: which of them count where compaction looks up the rows above.

There, the record of a key on the lowest level above 0 is the result of merging it with everything
on the levels above. Engines that build rows would count those twice.
"""

import numpy as np
import pyarrow as pa

from emberlake.merge.order import order_rows
from emberlake.merge.plan import MergePlan
from emberlake.merge.rows import take_rows
from emberlake.spec.key_value import KIND, LEVEL, SEQUENCE


def without_covered(plan: MergePlan, rows: pa.Table) -> pa.Table:
    """Records without those that one of the same key stands for.

    Records of level 0 stay, and of those above only the one on the lowest level. Without levels,
    or in tables whose compaction does not look up, all records stay.
    """
    if not plan.knows_levels or LEVEL not in rows.column_names:
        return rows
    levels = rows.column(LEVEL).to_numpy()
    upper = np.flatnonzero(levels > 0)
    if not len(upper) or levels[upper].min() == levels[upper].max():
        return rows  # the keys of one level are distinct
    together = take_rows(rows.select([f.name for f in plan.keys]), upper)
    together = together.append_column(SEQUENCE, pa.array(levels[upper].astype(np.int64)))
    together = together.append_column(KIND, pa.array(np.zeros(len(upper), np.int8)))
    order = order_rows(together, plan.keys, ())
    if len(order.starts) == len(upper):
        return rows
    counts = levels == 0
    counts[upper[order.rows[order.starts]]] = True
    return take_rows(rows, np.flatnonzero(counts))
