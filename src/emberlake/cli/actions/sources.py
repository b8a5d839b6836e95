"""Finds the files of a source and their format, without opening any of them."""

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from emberlake.cli.actions.creation import format_of_name
from emberlake.cli.choices import SourceFormat
from emberlake.cli.failures import UsageError
from emberlake.errors import FileNotFound

_SCHEME: Final = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_GLOB_CHARS: Final = re.compile(r"([\\*?\[\]{}])")
_HIDDEN: Final = ("_", ".")


@dataclass(frozen=True)
class Source:
    """Paths for Spark, their format, and their total size (None if not on this disk)."""

    paths: tuple[str, ...]
    format: SourceFormat
    files: int | None
    bytes: int | None
    roots: tuple[Path, ...] = ()  # files and folders on this disk


def find_source(texts: Sequence[str], source_format: SourceFormat | None) -> Source:
    """The source that was named; it exists.

    Raises:
        FileNotFound: there is no such file, or a glob matches none.
        UsageError: the format is not clear, or there are several.
    """
    remote = [text for text in texts if _SCHEME.match(text)]
    roots = [path for text in texts if not _SCHEME.match(text) for path in _expand(text)]
    files = [file for root in roots for file in iter_data_files(root)]
    if not files and not remote:
        raise FileNotFound(", ".join(texts), "there is no data file in it")
    found = source_format or _common_format([file.name for file in files] + remote)
    paths = [_escaped(os.path.abspath(root)) for root in roots] + remote  # noqa: PTH100
    if remote:
        return Source(tuple(paths), found, None, None)
    size = sum(file.stat().st_size for file in files)
    return Source(tuple(paths), found, len(files), size, tuple(roots))


def iter_data_files(root: Path) -> Iterator[Path]:
    """The files that Spark reads in a file or folder: names that begin with _ or . are not data."""
    if root.is_file():
        yield root
        return
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not _is_hidden(name))
        yield from (Path(folder) / name for name in sorted(names) if not _is_hidden(name))


def _is_hidden(name: str) -> bool:
    # Folders such as _day=1 hold rows of the partition column _day.
    return name.startswith(_HIDDEN) and "=" not in name


def _expand(text: str) -> list[Path]:
    path = Path(text).expanduser()
    if path.exists():
        return [path]
    found = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - takes absolute patterns
    if not found:
        is_pattern = glob.has_magic(text)
        raise FileNotFound(text, "nothing matches it" if is_pattern else "")
    return [Path(name) for name in found]


def _common_format(names: Sequence[str]) -> SourceFormat:
    formats = {format_of_name(name) for name in names}
    if len(formats) == 1:
        (only,) = formats
        if only is not None:
            return only
    choices = "|".join(SourceFormat)
    known = sorted(f.value for f in formats if f is not None)
    found = " and ".join(known) if len(known) > 1 else "names that do not show the format"
    raise UsageError(
        f"all sources must have one format; found {found}: give --source-format {choices}"
    )


def _escaped(path: str) -> str:
    """A literal path, escaped because Spark treats paths as patterns."""
    return _GLOB_CHARS.sub(r"\\\1", path)
