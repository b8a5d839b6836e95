"""Convert values of a column's old type to its current type.

The rules are those by which other engines read the same old files: integers wrap when they are
narrowed, fractions are cut off, decimals round half up and become null where they do not fit, text
is cut to its new length and CHAR is padded with spaces. Text that is not a value of the new type is
an error. Conversions between timestamps with and without a local time zone take the zone to be UTC,
so that a table reads the same everywhere.

Kernels work on whole arrays. A few have no Arrow kernel to build on (texts of dates, times,
timestamps and decimals; numbers that print with an exponent): those loop over the *distinct*
values, see ``arrays.map_distinct``.
"""

from emberlake.read.casts.kernels import cast_array, find_cast

__all__ = ["cast_array", "find_cast"]
