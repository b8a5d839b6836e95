"""Macros for functions of texts and times, whose arguments are texts and times already."""

from typing import Final

TEXTS: Final = {
    "length": """(x) AS CAST(CASE WHEN typeof(x) = 'BLOB' THEN octet_length(TRY_CAST(x AS BLOB))
        ELSE length(spark_text(x)) END AS INTEGER)""",
    "octet_length": """(x) AS CAST(octet_length(spark_bytes(x)) AS INTEGER)""",
    "bit_length": "(x) AS 8 * spark_octet_length(x)",
    "upper": "(x) AS upper(x)",
    "lower": "(x) AS lower(x)",
    "initcap": """(x) AS array_to_string(list_transform(string_split(lower(x), ' '),
        lambda w: upper(left(w, 1)) || substring(w, 2)), ' ')""",
    "trim": "(x) AS trim(x, ' '), (x, c) AS trim(x, c)",
    "left_trim": "(x) AS ltrim(x, ' '), (x, c) AS ltrim(x, c)",
    "right_trim": "(x) AS rtrim(x, ' '), (x, c) AS rtrim(x, c)",
    "ltrim": "(x) AS spark_left_trim(x), (c, x) AS spark_left_trim(x, c)",
    "rtrim": "(x) AS spark_right_trim(x), (c, x) AS spark_right_trim(x, c)",
    # Positions count from 1, and from the end where they are negative; 0 means 1.
    "from": """(x, p) AS CASE WHEN p > 0 THEN CAST(p AS BIGINT) - 1
        WHEN p < 0 THEN length(x) + p ELSE 0 END""",
    "substring": """(x, p) AS spark_part(x, p, 2147483647),
        (x, p, n) AS spark_part(x, p, n)""",
    "part": """(x, p, n) AS CASE WHEN n <= 0 THEN left(x, CAST(0 * p AS BIGINT))
        WHEN n > 0 THEN substring(x, CAST(greatest(spark_from(x, p), 0) + 1 AS BIGINT),
            CAST(greatest(least(spark_from(x, p) + CAST(n AS BIGINT), length(x))
                - greatest(spark_from(x, p), 0), 0) AS BIGINT)) END""",
    "characters": """(x) AS CASE
        WHEN typeof(x) = 'BLOB' THEN CAST(spark_refused(x, 'a string') AS VARCHAR)
        ELSE spark_text(x) END""",
    "left": "(x, n) AS CASE WHEN n <= 0 THEN left(x, 0) ELSE left(x, n) END",
    "right": "(x, n) AS CASE WHEN n <= 0 THEN left(x, 0) ELSE right(x, n) END",
    "instr": "(x, y) AS CAST(instr(x, y) AS INTEGER)",
    "locate": """(y, x) AS spark_instr(x, y),
        (y, x, p) AS CASE WHEN x IS NULL OR y IS NULL THEN NULL
            WHEN p IS NULL OR p < 1 OR spark_instr(substring(x, p), y) = 0 THEN 0
            ELSE CAST(spark_instr(substring(x, p), y) + p - 1 AS INTEGER) END""",
    "lpad": """(x, n) AS spark_left_pad(x, n, ' '), (x, n, p) AS spark_left_pad(x, n, p)""",
    "left_pad": """(x, n, p) AS CASE WHEN n <= 0 THEN left(x, 0)
        WHEN p = '' OR n <= length(x) THEN left(x, n)
        ELSE lpad(x, n, nullif(p, '')) END""",
    "rpad": """(x, n) AS spark_right_pad(x, n, ' '), (x, n, p) AS spark_right_pad(x, n, p)""",
    "right_pad": """(x, n, p) AS CASE WHEN n <= 0 THEN left(x, 0)
        WHEN p = '' OR n <= length(x) THEN left(x, n)
        ELSE rpad(x, n, nullif(p, '')) END""",
    "repeat": "(x, n) AS repeat(x, n)",
    "space": "(n) AS repeat(' ', n)",
    "reverse": "(x) AS reverse(x)",
    "replace": """(x, y) AS replace(x, y, ''),
        (x, y, z) AS replace(x, y, z)""",
    "translate": "(x, y, z) AS translate(x, y, z)",
    "overlay": """(x, y, p) AS spark_left(x, p - 1) || y || substring(x, p + length(y)),
        (x, y, p, n) AS spark_left(x, p - 1) || y
            || substring(x, p + CASE WHEN n < 0 THEN length(y) ELSE n END)""",
    "split": """(x, r) AS spark_split_all(x, r),
        (x, r, n) AS CASE WHEN n > 0 THEN error('split with a limit needs Spark')
            ELSE spark_split_all(x, r) END""",
    "split_all": """(x, r) AS CASE WHEN r = '' THEN error('split by an empty pattern needs Spark')
            ELSE string_split_regex(x, spark_pattern(r)) END""",
    "split_part": """(x, d, n) AS CASE WHEN n = 0
        THEN error('[INVALID_INDEX_OF_ZERO] parts are counted from 1')
        WHEN d = '' THEN CASE WHEN abs(n) = 1 THEN x ELSE '' END ELSE split_part(x, d, n) END""",
    "substring_index": """(x, d, n) AS CASE WHEN n = 0 OR d = '' THEN left(x, 0)
        WHEN n > 0 THEN array_to_string(list_slice(string_split(x, d), 1, n), d)
        WHEN -n >= len(string_split(x, d)) THEN x
        ELSE array_to_string(string_split(x, d)[n:], d) END""",
    "ascii": "(x) AS CAST(ascii(x) AS INTEGER)",
    "chr": "(n) AS CASE WHEN n < 0 THEN '' ELSE chr(CAST(n % 256 AS INTEGER)) END",
    "levenshtein": """(x, y) AS CASE WHEN strlen(x) = length(x) AND strlen(y) = length(y)
        THEN CAST(levenshtein(x, y) AS INTEGER)
        WHEN x IS NOT NULL AND y IS NOT NULL
        THEN error('levenshtein of letters beyond ASCII needs Spark') END""",
    "startswith": "(x VARCHAR, y VARCHAR) AS starts_with(x, y)",
    "endswith": "(x VARCHAR, y VARCHAR) AS ends_with(x, y)",
    "contains": "(x VARCHAR, y VARCHAR) AS contains(x, y)",
    "md5": "(x) AS md5(spark_bytes(x))",
    "sha1": "(x) AS sha1(spark_bytes(x))",
    "sha256": "(x) AS sha256(spark_bytes(x))",
    "sha2": """(x, n) AS CASE WHEN n IN (0, 256) THEN spark_sha256(x)
        ELSE error('sha2 of ' || n || ' bits needs Spark') END""",
    "hex": """(x) AS CASE WHEN typeof(x) IN ('VARCHAR', 'BLOB') THEN hex(spark_bytes(x))
        ELSE hex(TRY_CAST(x AS BIGINT)) END""",
    "unhex": "(x) AS TRY(unhex(x))",
    "base64": "(x) AS to_base64(spark_bytes(x))",
    "unbase64": "(x) AS from_base64(x)",
    "encode": """(x, c) AS CASE WHEN upper(c) IN ('UTF-8', 'UTF8') THEN encode(x)
        ELSE error('the character set ' || c || ' needs Spark') END""",
    "to_text": """(x, c) AS CASE WHEN upper(c) IN ('UTF-8', 'UTF8') THEN decode(x)
        ELSE error('the character set ' || c || ' needs Spark') END""",
    "joined": "(x) AS x",
    "texts": "(x) AS [spark_text(x)]",
    "replacement": r"(x) AS regexp_replace(x, '\$([0-9])', '\\\1', 'g')",
    "regexp_replace": """(x, r, y) AS
        regexp_replace(x, spark_pattern(r), spark_replacement(y), 'g')""",
    "regexp_extract": """(x, r) AS regexp_extract(x, spark_pattern(r), 1),
        (x, r, n) AS regexp_extract(x, spark_pattern(r), n)""",
    "regexp_extract_all": """(x, r) AS regexp_extract_all(x, spark_pattern(r), 1),
        (x, r, n) AS regexp_extract_all(x, spark_pattern(r), n)""",
    "regexp_count": """(x, r) AS
        CAST(len(regexp_extract_all(x, spark_pattern(r), 0)) AS INTEGER)""",
    "regexp_substr": "(x, r) AS nullif(regexp_extract(x, spark_pattern(r), 0), '')",
    "rlike": "(x, r) AS regexp_matches(x, spark_pattern(r))",
    # In Java's patterns these mean something else.
    "pattern": """(r) AS CASE WHEN contains(r, '[:') OR contains(r, '&&')
        THEN CAST(spark_refused(r, 'a pattern with [: or &&') AS VARCHAR) ELSE r END""",
    "find_in_set": """(x, y) AS CASE WHEN x IS NULL OR y IS NULL THEN NULL
        WHEN contains(x, ',') THEN 0
        ELSE CAST(coalesce(list_position(string_split(y, ','), x), 0) AS INTEGER) END""",
    "get_json_object": "(x, p) AS TRY(json_extract_string(x, p))",
}
TIMES: Final = {
    **{
        part: f"(x) AS CAST({part}(x) AS INTEGER)"
        for part in ("year", "month", "day", "quarter", "dayofyear", "weekofyear")
    },
    "dayofweek": "(x) AS CAST(dayofweek(x) + 1 AS INTEGER)",
    "weekday": "(x) AS CAST(isodow(x) - 1 AS INTEGER)",
    "isodow": "(x) AS CAST(isodow(x) AS INTEGER)",
    "isoyear": "(x) AS CAST(isoyear(x) AS INTEGER)",
    "hour": "(x) AS CAST(hour(x) AS INTEGER)",
    "minute": "(x) AS CAST(minute(x) AS INTEGER)",
    "second": "(x) AS CAST(second(x) AS INTEGER)",
    "seconds": """(x) AS CAST(CAST(microsecond(x) AS DECIMAL(18, 0))
        / 1000000 AS DECIMAL(8, 6))""",
    "date_add": "(x, n) AS x + CAST(n AS INTEGER)",
    "date_sub": "(x, n) AS x - CAST(n AS INTEGER)",
    "datediff": "(x, y) AS CAST(x - y AS INTEGER)",
    "add_months": "(x, n) AS CAST(x + to_months(CAST(n AS INTEGER)) AS DATE)",
    # A date stays a date, unless the interval has hours.
    "plus_days": "(x, i) AS cast_to_type(x + i, x)",
    "plus_time": "(x, i) AS x + i",
    "months_between": """(x, y) AS spark_months(x, y)""",
    "months": """(x, y) AS CASE
        WHEN day(x) = day(y) OR (day(x) = day(last_day(x)) AND day(y) = day(last_day(y)))
        THEN CAST((year(x) - year(y)) * 12 + month(x) - month(y) AS DOUBLE)
        ELSE round((year(x) - year(y)) * 12 + month(x) - month(y)
            + ((day(x) - day(y)) * 86400 + floor(epoch(x) - epoch(date_trunc('day', x)))
            - floor(epoch(y) - epoch(date_trunc('day', y)))) / 2678400, 8) END""",
    "last_day": "(x) AS last_day(x)",
    "next_day": """(x, w) AS CASE WHEN list_contains(['MO', 'MON', 'MONDAY', 'TU', 'TUE',
        'TUESDAY', 'WE', 'WED', 'WEDNESDAY', 'TH', 'THU', 'THURSDAY', 'FR', 'FRI', 'FRIDAY', 'SA',
        'SAT', 'SATURDAY', 'SU', 'SUN', 'SUNDAY'], upper(w)) THEN x + CAST((
        list_position(['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'], upper(left(w, 2)))
        - isodow(x) + 6) % 7 + 1 AS INTEGER)
        WHEN w IS NOT NULL THEN CAST('[ILLEGAL_DAY_OF_WEEK] ' || w AS DATE) END""",
    "trunc": """(x, f) AS CAST(CASE upper(f)
        WHEN 'YEAR' THEN date_trunc('year', x)
        WHEN 'YYYY' THEN date_trunc('year', x)
        WHEN 'YY' THEN date_trunc('year', x)
        WHEN 'QUARTER' THEN date_trunc('quarter', x)
        WHEN 'MONTH' THEN date_trunc('month', x)
        WHEN 'MON' THEN date_trunc('month', x)
        WHEN 'MM' THEN date_trunc('month', x)
        WHEN 'WEEK' THEN date_trunc('week', x) END AS DATE)""",
    "unit": """(f) AS CASE upper(f) WHEN 'YYYY' THEN 'year' WHEN 'YY' THEN 'year'
        WHEN 'MON' THEN 'month' WHEN 'MM' THEN 'month' WHEN 'DD' THEN 'day'
        WHEN 'YEAR' THEN 'year' WHEN 'QUARTER' THEN 'quarter' WHEN 'MONTH' THEN 'month'
        WHEN 'WEEK' THEN 'week' WHEN 'DAY' THEN 'day' WHEN 'HOUR' THEN 'hour'
        WHEN 'MINUTE' THEN 'minute' WHEN 'SECOND' THEN 'second'
        WHEN 'MILLISECOND' THEN 'millisecond' WHEN 'MICROSECOND' THEN 'microsecond' END""",
    "date_trunc": "(f, x) AS date_trunc(spark_unit(f), x)",
    "whole_months": """(x, y) AS spark_complete_months(x, y,
        CAST(12 * (year(y) - year(x))
            + month(y) - month(x) AS BIGINT))""",
    "complete_months": """(x, y, n) AS CASE
        WHEN n > 0 AND y - date_trunc('month', y) < x - date_trunc('month', x) THEN n - 1
        WHEN n < 0 AND y - date_trunc('month', y) > x - date_trunc('month', x) THEN n + 1
        ELSE n END""",
    "unix_date": "(x) AS CAST(x - DATE '1970-01-01' AS INTEGER)",
    "unix_timestamp": "(x) AS CAST(trunc(epoch(x)) AS BIGINT)",
    "unix_seconds": "(x) AS CAST(floor(epoch(x)) AS BIGINT)",
    "unix_millis": "(x) AS CAST(floor(epoch_us(x) / 1000) AS BIGINT)",
    "unix_micros": "(x) AS epoch_us(x)",
    "date_from_unix_date": "(n) AS DATE '1970-01-01' + CAST(n AS INTEGER)",
    "timestamp_seconds": "(n) AS to_timestamp(CAST(n AS DOUBLE))",
    "timestamp_millis": "(n) AS CAST(make_timestamp(CAST(n AS BIGINT) * 1000) AS TIMESTAMPTZ)",
    "timestamp_micros": "(n) AS CAST(make_timestamp(CAST(n AS BIGINT)) AS TIMESTAMPTZ)",
    "make_date": "(y, m, d) AS make_date(CAST(y AS BIGINT), CAST(m AS BIGINT), CAST(d AS BIGINT))",
    "make_timestamp": """(y, m, d, h, i, s) AS
        CAST(spark_make_timestamp_ntz(y, m, d, h, i, s) AS TIMESTAMPTZ)""",
    "make_timestamp_ntz": """(y, m, d, h, i, s) AS make_timestamp(CAST(y AS BIGINT),
        CAST(m AS BIGINT), CAST(d AS BIGINT), CAST(h AS BIGINT), CAST(i AS BIGINT),
        CAST(s AS DOUBLE))""",
    "from_utc_timestamp": """(x, z) AS
        CAST(timezone(z, x) AS TIMESTAMPTZ)""",
    "to_utc_timestamp": """(x, z) AS timezone(z, CAST(x AS TIMESTAMP))""",
    "dayname": "(x) AS left(dayname(x), 3)",
    "monthname": "(x) AS left(monthname(x), 3)",
    "formatted": "(x, p) AS strftime(CAST(x AS TIMESTAMP), p)",
    # What is written otherwise than the pattern says is not read.
    "parsed": """(x, p) AS CASE WHEN lower(strftime(strptime(x, p), p)) = lower(x)
        THEN strptime(x, p) WHEN x IS NOT NULL
        THEN CAST('[CANNOT_PARSE_TIMESTAMP] ' || x AS TIMESTAMP) END""",
    "parsed_loosely": "(x, p) AS strptime(x, p)",
}
