"""The data source that Spark finds under the name ``emberlake``."""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from emberlake.datasource.batch_read import BatchReader
from emberlake.datasource.batch_write import BatchWriter
from emberlake.datasource.columns import offered_schema
from emberlake.datasource.options import SourceOptions, Use, parse_options
from emberlake.datasource.pin import Pin
from emberlake.datasource.stream_read import StreamReader
from emberlake.datasource.stream_write import StreamWriter
from emberlake.errors import EmberlakeError

_P = ParamSpec("_P")
_R = TypeVar("_R")


def alone(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """Errors without the calls that led to them: Spark shows these in front of the message."""

    @wraps(method)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(*args, **kwargs)
        except EmberlakeError as error:
            raise error.with_traceback(None) from None

    return wrapped


class EmberlakeDataSource(DataSource):
    """Apache Paimon tables as ``format("emberlake")``; nothing happens until Spark asks."""

    # What batches read, or why they cannot: a stream may start where a batch finds nothing.
    _pinned: Pin | EmberlakeError | None = None

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "emberlake"

    @alone
    def schema(self) -> StructType:
        """The columns of a read for which the user gives no schema."""
        options = parse_options(self.options, Use.BATCH_READ, Use.STREAM_READ)
        pinned = self._pin(options)
        known = pinned.store.schema if isinstance(pinned, Pin) else options.open_schema()
        return offered_schema(options, known)

    @alone
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of one snapshot."""
        options = parse_options(self.options, Use.BATCH_READ)
        pinned = self._pin(options)
        if isinstance(pinned, EmberlakeError):
            raise pinned
        return BatchReader(options, pinned, schema)

    @alone
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001
        """A writer that makes one commit."""
        options = parse_options(self.options, Use.BATCH_WRITE)
        return BatchWriter(options, schema, overwrite=overwrite)

    @alone
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A reader that follows the table."""
        return StreamReader(parse_options(self.options, Use.STREAM_READ), schema)

    @alone
    def streamWriter(  # noqa: N802
        self,
        schema: StructType,
        overwrite: bool,  # noqa: FBT001
    ) -> DataSourceStreamWriter:
        """A writer that makes one commit per micro-batch."""
        options = parse_options(self.options, Use.STREAM_WRITE)
        return StreamWriter(options, schema, overwrite=overwrite)

    def __getstate__(self) -> dict[str, Any]:
        # If the user gives a schema, Spark pickles the source without having asked for ours.
        with suppress(EmberlakeError):  # the read reports wrong options
            self._pin(parse_options(self.options, Use.BATCH_READ, Use.STREAM_READ))
        return dict(self.__dict__)

    def _pin(self, options: SourceOptions) -> Pin | EmberlakeError:
        if self._pinned is None:
            try:
                self._pinned = Pin.now(options)
            except EmberlakeError as error:
                self._pinned = error
        return self._pinned
