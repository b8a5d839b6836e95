"""How much a stream reads at once; sources can tell Spark since 4.2."""

from typing import TYPE_CHECKING, Any

from emberlake.datasource.options import MAX_BYTES, MAX_FILES, MAX_ROWS, ReadLimits
from emberlake.errors import Unsupported

if TYPE_CHECKING:
    from pyspark.sql.streaming import datasource as admission

    TriggerAvailableNow = admission.SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming import datasource as admission

        TriggerAvailableNow = admission.SupportsTriggerAvailableNow
    except ImportError:  # Spark 4.1 reads everything in one batch
        admission = None
        TriggerAvailableNow = object


def check_limits(limits: ReadLimits) -> None:
    """Refuse limits that this Spark would not keep."""
    if admission is None and not limits.is_unbounded:
        raise Unsupported(
            f"{MAX_FILES}, {MAX_ROWS} and {MAX_BYTES} need Spark 4.2; this version always asks for "
            "everything there is"
        )


def to_read_limit(limits: ReadLimits) -> Any:
    """The limit to tell Spark: any one of them, because the source enforces all of them."""
    if limits.files is not None:
        return admission.ReadMaxFiles(limits.files)
    if limits.rows is not None:
        return admission.ReadMaxRows(limits.rows)
    if limits.size is not None:
        return admission.ReadMaxBytes(limits.size)
    return admission.ReadAllAvailable()


def is_read_all(limit: Any) -> bool:
    """Whether Spark wants everything, whatever the options say; Spark 4.1 always does."""
    return limit is None or isinstance(limit, admission.ReadAllAvailable)
