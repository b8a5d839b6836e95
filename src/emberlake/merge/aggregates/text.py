"""Texts joined with a delimiter. Spec: "Merge engines"."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from emberlake.merge.aggregates.steps import COMES_IN, Step, Steps, pick
from emberlake.spec.column_buffers import I64, Mask

# A text of only these counts as empty. No-break spaces are not among them.
_BLANKS: Final = (
    "\t\n\x0b\f\r\x1c\x1d\x1e\x1f \u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2008\u2009\u200a\u2028\u2029\u205f\u3000"
)


def listagg(column: pa.Array, steps: Steps, *, delimiter: str, distinct: bool) -> pa.Array:
    """The texts that are not blank, oldest first; a blank one only if there is no other."""
    is_item = steps.are(*COMES_IN) & ~_blank(column)
    at = steps.oldest_first(np.flatnonzero(is_item))
    counts = steps.counts(is_item)
    offsets = np.concatenate(([0], np.cumsum(counts)))
    if distinct:
        joined = _join_distinct(column.take(pa.array(at)), offsets, delimiter)
    else:
        texts = column.take(pa.array(at))
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), texts)
        joined = pc.binary_join(lists, delimiter)
    blanks = pick(column, _blank_at(steps))
    return pc.if_else(pa.array(counts > 0), joined, blanks)


def _blank(column: pa.Array) -> Mask:
    is_blank = pc.equal(pc.utf8_trim(column, characters=_BLANKS), "")
    result: Mask = is_blank.fill_null(True).to_numpy(zero_copy_only=False)
    return result


def _blank_at(steps: Steps) -> I64:
    """The position of the value of a key without texts: the last one to replace a blank one."""
    return steps.last(steps.are(Step.ADD_OLDER, Step.START))


def _join_distinct(texts: pa.Array, offsets: I64, delimiter: str) -> pa.Array:
    """The first text of each key, then the parts of the other texts that are new."""
    counts = np.diff(offsets)
    joined = pick(texts, np.where(counts > 0, offsets[:-1], -1))
    repeated = np.flatnonzero(counts > 1)
    separator = delimiter or " "  # without a delimiter, texts are sets of words
    results: list[str] = []
    # Which parts are new depends on all parts before them: a set per key.
    for begin, end in zip(offsets[repeated].tolist(), offsets[repeated + 1].tolist(), strict=True):
        first, *others = texts[begin:end].to_pylist()
        seen = dict.fromkeys(first.split(separator))
        known = len(seen)
        seen.update(dict.fromkeys(part for text in others for part in text.split(separator)))
        new_parts = [part for part in list(seen)[known:] if part.strip(_BLANKS)]
        results.append(delimiter.join([first, *new_parts]))
    mask = pa.array(counts > 1)
    return pc.replace_with_mask(joined, mask, pa.array(results, texts.type))
