"""Macros that convert values as Spark casts them."""

from typing import Final

# Conversions: what is done depends on the type, which is known before a row is read. An error that
# may be tried is a cast that fails.
CASTS: Final = {
    "text": """(x) AS CASE
        WHEN typeof(x) = 'VARCHAR' THEN CAST(x AS VARCHAR)
        WHEN typeof(x) IN ('FLOAT', 'DOUBLE') THEN spark_float_text(CAST(x AS VARCHAR))
        WHEN typeof(x) = 'TIMESTAMP WITH TIME ZONE' THEN CAST(TRY_CAST(x AS TIMESTAMP) AS VARCHAR)
        WHEN typeof(x) = 'BLOB' THEN decode(TRY_CAST(x AS BLOB))
        WHEN typeof(x) LIKE '%]' OR typeof(x) LIKE 'STRUCT%' OR typeof(x) LIKE 'MAP%'
            OR typeof(x) = 'INTERVAL' THEN CAST(spark_refused(x, 'a string') AS VARCHAR)
        ELSE CAST(x AS VARCHAR) END""",
    "refused": """(x, kind) AS CAST('[DATATYPE_MISMATCH] without Spark, a value of type '
        || typeof(x) || ' cannot be taken for ' || kind AS INTEGER)""",
    "is_number": """(x) AS typeof(x) IN ('TINYINT', 'SMALLINT', 'INTEGER', 'BIGINT', 'HUGEINT',
        'UTINYINT', 'USMALLINT', 'UINTEGER', 'UBIGINT', 'FLOAT', 'DOUBLE', 'BOOLEAN', '"NULL"')
        OR (typeof(x) LIKE 'DECIMAL(%' AND typeof(x) NOT LIKE '%]')""",
    "float_text": """(s) AS CASE
        WHEN s IN ('nan', '-nan') THEN 'NaN' WHEN s = 'inf' THEN 'Infinity'
        WHEN s = '-inf' THEN '-Infinity' WHEN TRY_CAST(s AS DOUBLE) = 0 THEN s
        WHEN abs(TRY_CAST(s AS DOUBLE)) >= 0.001 AND abs(TRY_CAST(s AS DOUBLE)) < 10000000 THEN s
        ELSE spark_scientific(CASE WHEN s LIKE '-%' THEN '-' ELSE '' END, ltrim(s, '-')) END""",
    "scientific": """(sign, s) AS sign || CASE
        WHEN contains(s, 'e') THEN spark_mantissa(replace(split_part(s, 'e', 1), '.', ''))
            || 'E' || CAST(TRY_CAST(split_part(s, 'e', 2) AS INTEGER) AS VARCHAR)
        WHEN s LIKE '0.%' THEN spark_mantissa(ltrim(substring(s, 3), '0')) || 'E-'
            || CAST(length(s) - 1 - length(ltrim(substring(s, 3), '0')) AS VARCHAR)
        ELSE spark_mantissa(replace(s, '.', '')) || 'E'
            || CAST(length(split_part(s, '.', 1)) - 1 AS VARCHAR) END""",
    "mantissa": """(d) AS left(d, 1) || '.' || CASE WHEN rtrim(substring(d, 2), '0') = '' THEN '0'
        ELSE rtrim(substring(d, 2), '0') END""",
    "trimmed": r"""(x) AS
        regexp_replace(CAST(x AS VARCHAR), '^[\x00-\x20\x7f]+|[\x00-\x20\x7f]+$', '', 'g')""",
    "integer": """(x) AS CAST(CASE
        WHEN regexp_full_match(spark_trimmed(x), '[+-]?[0-9]+') THEN spark_trimmed(x)
        ELSE '[CAST_INVALID_INPUT] ' || x END AS BIGINT)""",
    "long": """(x) AS CASE
        WHEN typeof(x) IN ('FLOAT', 'DOUBLE') THEN CAST(trunc(TRY_CAST(x AS DOUBLE)) AS BIGINT)
        WHEN typeof(x) LIKE 'DECIMAL%'
        THEN CAST(nullif(split_part(CAST(x AS VARCHAR), '.', 1), '') AS BIGINT)
        WHEN typeof(x) = 'VARCHAR' THEN spark_integer(CAST(x AS VARCHAR))
        WHEN typeof(x) = 'TIMESTAMP WITH TIME ZONE'
        THEN CAST(floor(epoch(TRY_CAST(x AS TIMESTAMP))) AS BIGINT)
        WHEN typeof(x) = 'HUGEINT' THEN CAST(CAST(x AS VARCHAR) AS BIGINT)
        WHEN spark_is_number(x) THEN TRY_CAST(x AS BIGINT)
        ELSE spark_refused(x, 'a number') END""",
    "double": r"""(x) AS CASE
        WHEN typeof(x) = 'VARCHAR' THEN spark_float(CAST(x AS VARCHAR))
        WHEN typeof(x) = 'TIMESTAMP WITH TIME ZONE' THEN epoch(TRY_CAST(x AS TIMESTAMP))
        WHEN spark_is_number(x) THEN TRY_CAST(x AS DOUBLE)
        ELSE spark_refused(x, 'a number') END""",
    "float": r"""(x) AS CAST(CASE WHEN regexp_full_match(spark_trimmed(x),
            '[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?')
        THEN rtrim(spark_trimmed(x), 'dDfF')
        WHEN regexp_full_match(lower(spark_trimmed(x)), '[+-]?(inf|infinity)|nan')
        THEN spark_trimmed(x) ELSE '[CAST_INVALID_INPUT] ' || x END AS DOUBLE)""",
    "exact": r"""(x) AS CASE
        WHEN typeof(x) = 'VARCHAR' THEN CASE WHEN regexp_full_match(spark_trimmed(x),
                '[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?') THEN spark_trimmed(x)
            ELSE '[CAST_INVALID_INPUT] ' || CAST(x AS VARCHAR) END
        WHEN typeof(x) = 'BOOLEAN' THEN CAST(TRY_CAST(x AS INTEGER) AS VARCHAR)
        WHEN typeof(x) = 'TIMESTAMP WITH TIME ZONE'
        THEN CAST(TRY_CAST(epoch_us(TRY_CAST(x AS TIMESTAMP)) AS DECIMAL(24, 0))
            * TRY_CAST('0.000001' AS DECIMAL(6, 6)) AS VARCHAR)
        WHEN typeof(x) IN ('FLOAT', 'DOUBLE') THEN CASE
            WHEN isnan(TRY_CAST(x AS DOUBLE)) THEN NULL ELSE CAST(x AS VARCHAR) END
        WHEN spark_is_number(x) THEN CAST(x AS VARCHAR)
        ELSE CAST(spark_refused(x, 'a number') AS VARCHAR) END""",
    "boolean": """(x) AS CASE
        WHEN typeof(x) = 'VARCHAR' THEN CAST(CASE
            WHEN lower(spark_trimmed(x)) IN ('t', 'true', 'y', 'yes', '1') THEN 'true'
            WHEN lower(spark_trimmed(x)) IN ('f', 'false', 'n', 'no', '0') THEN 'false'
            ELSE '[CAST_INVALID_INPUT] ' || CAST(x AS VARCHAR) END AS BOOLEAN)
        WHEN spark_is_number(x) THEN TRY_CAST(x AS DOUBLE) <> 0
        ELSE spark_refused(x, 'a boolean') = 0 END""",
    "date": """(x) AS CASE
        WHEN typeof(x) = 'DATE' THEN TRY_CAST(x AS DATE)
        WHEN typeof(x) IN ('TIMESTAMP', 'TIMESTAMP WITH TIME ZONE')
        THEN TRY_CAST(TRY_CAST(x AS TIMESTAMP) AS DATE)
        WHEN typeof(x) = 'VARCHAR' THEN spark_calendar_day(CAST(x AS VARCHAR))
        WHEN typeof(x) = '"NULL"' THEN NULL
        ELSE DATE '1970-01-01' + spark_refused(x, 'a date') END""",
    "day_text": r"""(x) AS CASE
        WHEN regexp_full_match(x, '[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T](.|\n)*)?')
        THEN regexp_extract(x, '^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}')
        WHEN regexp_full_match(x, '[0-9]{4}-[0-9]{1,2}') THEN x || '-01'
        WHEN regexp_full_match(x, '[0-9]{4}') THEN x || '-01-01'
        ELSE '[CAST_INVALID_INPUT] ' || x END""",
    "calendar_day": "(x) AS CAST(spark_day_text(spark_trimmed(x)) AS DATE)",
    # A text with the parts of a moment that Spark lets out.
    "moment": r"""(x) AS CASE
        WHEN regexp_full_match(x, '[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}'
            || '([ T][0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}(\.[0-9]+)?)?'
            || '( ?(Z|UTC|[+-][0-9]{2}:[0-9]{2}|[A-Z][A-Za-z_]+/[A-Za-z_/]+))?)?')
        THEN x WHEN regexp_full_match(x, '[0-9]{4}-[0-9]{1,2}') THEN x || '-01'
        WHEN regexp_full_match(x, '[0-9]{4}') THEN x || '-01-01'
        ELSE '[CAST_INVALID_INPUT] ' || x END""",
    "timestamp": """(x) AS CASE
        WHEN typeof(x) = 'TIMESTAMP WITH TIME ZONE' THEN TRY_CAST(x AS TIMESTAMPTZ)
        WHEN typeof(x) IN ('DATE', 'TIMESTAMP')
        THEN TRY_CAST(TRY_CAST(x AS TIMESTAMP) AS TIMESTAMPTZ)
        WHEN typeof(x) = 'VARCHAR' THEN CAST(spark_moment(spark_trimmed(x)) AS TIMESTAMPTZ)
        WHEN typeof(x) <> 'BOOLEAN' AND spark_is_number(x) THEN TRY_CAST(
            make_timestamp(CAST(trunc(TRY_CAST(x AS DOUBLE) * 1000000) AS BIGINT)) AS TIMESTAMPTZ)
        ELSE to_timestamp(spark_refused(x, 'a timestamp')) END""",
    "timestamp_ntz": r"""(x) AS CASE
        WHEN typeof(x) IN ('DATE', 'TIMESTAMP', 'TIMESTAMP WITH TIME ZONE')
        THEN TRY_CAST(x AS TIMESTAMP)
        WHEN typeof(x) = 'VARCHAR' THEN CAST(regexp_replace(spark_moment(spark_trimmed(x)),
            '([0-9]) ?(Z|UTC|[+-][0-9]{2}:[0-9]{2}|[A-Z][A-Za-z_]+/.*)$', '\1') AS TIMESTAMP)
        WHEN typeof(x) = '"NULL"' THEN NULL
        ELSE make_timestamp(spark_refused(x, 'a timestamp')) END""",
    "bytes": """(x) AS CASE WHEN typeof(x) = 'BLOB' THEN TRY_CAST(x AS BLOB)
        ELSE encode(spark_text(x)) END""",
    "binary": """(x) AS CASE WHEN typeof(x) IN ('VARCHAR', 'BLOB', '"NULL"') THEN spark_bytes(x)
        ELSE encode(CAST(spark_refused(x, 'a binary') AS VARCHAR)) END""",
    "varchar": """(x, n) AS CASE
        WHEN length(x) > n AND length(rtrim(x)) <= n THEN left(x, n) ELSE x END""",
    "char": """(x, n) AS CASE WHEN length(rtrim(x)) > n THEN x ELSE left(rpad(x, n, ' '), n) END""",
}
