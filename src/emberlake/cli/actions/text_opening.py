"""Opens text files in their encoding, and refuses those that are not what they seem to be."""

import bz2
import codecs
import csv
import gzip
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any, Final

from emberlake.cli.failures import UsageError
from emberlake.errors import CorruptFile

_UTF8: Final = "utf-8"
_BLOCK_BYTES: Final = 4 << 20
_DELIMITERS: Final = (";", "\t", "|")  # what is used instead of a comma
_LONGEST_HEADER: Final = 1 << 20  # characters


def encoding_of(options: Mapping[str, str]) -> str:
    """The encoding that the options of a source name; UTF-8 if they name none."""
    return options.get("encoding", options.get("charset", _UTF8))


def is_json_array(path: Path, encoding: str = _UTF8) -> bool:
    """Whether a JSON file is one array, rather than one object per line."""
    with open_text(path, encoding, errors="replace") as text:
        start = text.read(4096).lstrip("\ufeff \t\r\n")
    return start.startswith("[")


def check_delimiter(path: Path, options: Mapping[str, str]) -> None:
    """Refuse a CSV file if something other than a comma seems to separate its header.

    Raises:
        UsageError: says which option to give.
    """
    if {"delimiter", "sep", "header"} & set(options):
        return
    encoding = encoding_of(options)
    with decoding(path, encoding), open_text(path, encoding, errors="replace") as text:
        header = text.readline(_LONGEST_HEADER).strip()
    other = next((mark for mark in _DELIMITERS if mark in header), None)
    if other is not None and "," not in header:
        shown = repr(other)
        raise UsageError(
            f"{path}: its header has no comma: {header!r}; if {shown} separates columns, give "
            f"--source-option delimiter={shown}"
        )


@contextmanager
def decoding(path: Path, encoding: str) -> Iterator[None]:
    """While a file is read, report bytes that are not in its encoding, with their line.

    Raises:
        UsageError: there is no such encoding.
        CorruptFile: the file has another one.
    """
    try:
        codecs.lookup(encoding)
    except LookupError as error:
        raise UsageError(f"--source-option encoding={encoding}: {error}") from error
    try:
        yield
    except UnicodeError as error:
        raise CorruptFile(
            str(path),
            f"{_undecodable(path, encoding)} is not {encoding.upper()}; if the file has another "
            "encoding, name it: --source-option encoding=latin1",
        ) from error


def _undecodable(path: Path, encoding: str) -> str:
    """The line that cannot be decoded; lines are found by their bytes, so only in UTF-8."""
    if encoding != _UTF8:
        return "it"
    with _open_bytes(path) as raw:
        for number, line in enumerate(raw, start=1):
            try:
                line.decode(encoding)
            except UnicodeError:
                return f"line {number}"
    return "it"


def check_quotes(path: Path, encoding: str, delimiter: str) -> None:
    """Refuse a file that ends inside of quotes: all that follows them would be one value."""
    with _open_bytes(path) as raw:
        quotes = sum(block.count(b'"') for block in iter(lambda: raw.read(_BLOCK_BYTES), b""))
    if quotes % 2 == 0:
        return
    begun = 1
    with open_text(path, encoding) as text:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            for _ in reader:
                begun = reader.line_num + 1
        except csv.Error as error:
            if "end of data" in str(error):
                raise CorruptFile(
                    str(path), f"a quote in the row of line {begun} does not end"
                ) from error


def open_text(path: Path, encoding: str, errors: str = "strict") -> IO[str]:
    """A file as text, unpacked if its name says that it is compressed."""
    return TextIOWrapper(_open_bytes(path), encoding=encoding, errors=errors, newline="")


def _open_bytes(path: Path) -> Any:
    openers: dict[str, Callable[[Path, str], Any]] = {".gz": gzip.open, ".bz2": bz2.open}
    return openers.get(path.suffix.lower(), open)(path, "rb")
