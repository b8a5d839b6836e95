"""Spark's failures, which are many lines of Java, become one line."""

from emberlake.errors import DataMismatch, InvalidState
from emberlake.spark.source_failures import source_error

BAD_VALUE = """An error occurred while calling o431.collectToPython.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading \
file file:///in/bad.csv.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(Q.scala:920)
Caused by: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] \
Malformed records are detected in record parsing: [null,x].
Parse Mode: FAILFAST.  SQLSTATE: 22023
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.malformed(Q.scala:1617)
Caused by: java.lang.NumberFormatException: For input string: "seven"
\tat java.base/java.lang.Long.parseLong(Long.java:711)
"""


def test_a_value_that_cannot_be_read_is_reported_with_its_file() -> None:
    error = source_error(BAD_VALUE)

    assert isinstance(error, DataMismatch)
    assert str(error) == (
        '/in/bad.csv cannot be read as the table\'s columns: For input string: "seven"'
    )


def test_another_failure_is_one_line_without_codes() -> None:
    error = source_error("[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== SQL ==\nx")

    assert isinstance(error, InvalidState)
    assert str(error) == "Spark failed: Division by zero"
