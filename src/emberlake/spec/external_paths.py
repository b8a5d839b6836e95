"""Folders outside of a table that its new files go to. Spec: "External paths".

Such a file is found by the whole path in its manifest entry. The options only say where the
next one goes, so they can change at any time.
"""

import posixpath
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate, count, pairwise
from typing import Final

from emberlake.base.hashing import murmur3_of_bytes
from emberlake.base.option_texts import parse_words
from emberlake.errors import InvalidOption
from emberlake.options import (
    EXTERNAL_PATHS,
    EXTERNAL_SPECIFIC_FS,
    EXTERNAL_STRATEGY,
    EXTERNAL_WEIGHTS,
    INDEX_EXTERNAL_PATH,
    ExternalStrategy,
    TableOptions,
)

_URI: Final = re.compile(r"(?P<scheme>[^:/]+):(//(?P<authority>[^/]*))?(?P<path>.*)", re.DOTALL)
_SLASHES: Final = re.compile(r"/+")
_ENTROPY_BITS: Final = 20
_ENTROPY_CUTS: Final = (0, 4, 8, 12, _ENTROPY_BITS)


@dataclass(frozen=True, slots=True)
class ExternalPaths:
    """The folders that new files go to, and how one is chosen."""

    folders: tuple[str, ...]
    strategy: ExternalStrategy
    weights: tuple[int, ...] = ()  # one per folder; none if they are equal

    def chooser(self, bucket_path: str, chance: Callable[[], float]) -> Callable[[str], str]:
        """A function that returns the whole path of the next new file of a bucket, by its name."""
        folders = self._in_turn(chance)
        if self.strategy is ExternalStrategy.ENTROPY_INJECT:
            return lambda name: f"{next(folders)}/{bucket_path}/{entropy_folders(name)}/{name}"
        return lambda name: f"{next(folders)}/{bucket_path}/{name}"

    def _in_turn(self, chance: Callable[[], float]) -> Iterator[str]:
        if self.weights:
            bounds = [*accumulate(self.weights)]
            while True:
                yield self.folders[bisect_right(bounds, chance() * bounds[-1])]
        # Writers begin at a random folder; otherwise small commits would share one.
        is_mixed = self.strategy is ExternalStrategy.ENTROPY_INJECT
        start = 0 if is_mixed else int(chance() * len(self.folders))
        for number in count(start + 1):
            yield self.folders[number % len(self.folders)]


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """Where new files of one bucket go: into its folder, or outside of the table."""

    folder: str
    choose: Callable[[str], str] | None = None

    def external_path(self, name: str) -> str | None:
        """Where the next file goes if that is outside of the table; called once for each file."""
        return None if self.choose is None else self.choose(name)

    def path(self, name: str, external_path: str | None) -> str:
        """Where a file is."""
        return external_path or f"{self.folder}/{name}"


def external_paths(options: TableOptions) -> ExternalPaths | None:
    """Where new data files go; None if that is the table's own folder.

    Raises:
        InvalidOption: the options do not determine it.
    """
    problems = [*external_problems(options)]
    if problems:
        raise InvalidOption("; ".join(problems))
    strategy, folders = options.value(EXTERNAL_STRATEGY), _chosen(options)
    if strategy is ExternalStrategy.NONE or not folders:
        return None
    is_weighted = strategy is ExternalStrategy.WEIGHT_ROBIN and len(folders) > 1
    weights = options.value(EXTERNAL_WEIGHTS) if is_weighted else ()
    return ExternalPaths(folders, strategy, tuple(int(weight) for weight in weights))


def external_index_folder(options: TableOptions) -> str | None:
    """The folder outside of the table that new index files go to, if there is one.

    Raises:
        InvalidOption: the option has no scheme.
    """
    folder = options.value(INDEX_EXTERNAL_PATH).strip()
    if not folder:
        return None
    if _URI.fullmatch(folder) is None:
        raise InvalidOption(_no_scheme(INDEX_EXTERNAL_PATH.key, folder))
    return plain_uri(folder)


def external_folders(options: TableOptions) -> tuple[str, ...]:
    """Every folder outside of the table that options name, whether files go there now or not."""
    named = (*options.value(EXTERNAL_PATHS), *parse_words(options.value(INDEX_EXTERNAL_PATH)))
    return tuple(dict.fromkeys(plain_uri(folder) for folder in named if _URI.fullmatch(folder)))


def external_problems(options: TableOptions) -> Iterator[str]:
    """What is wrong with the options."""
    strategy, folders = options.value(EXTERNAL_STRATEGY), options.value(EXTERNAL_PATHS)
    index_folder = options.value(INDEX_EXTERNAL_PATH).strip()
    if index_folder and _URI.fullmatch(index_folder) is None:
        yield _no_scheme(INDEX_EXTERNAL_PATH.key, index_folder)
    if strategy is ExternalStrategy.NONE or not folders:
        return
    bare = [folder for folder in folders if _URI.fullmatch(folder) is None]
    if bare:
        yield _no_scheme(EXTERNAL_PATHS.key, bare[0])
        return
    if strategy is ExternalStrategy.SPECIFIC_FS and not options.value(EXTERNAL_SPECIFIC_FS):
        yield f"{EXTERNAL_STRATEGY.key}={strategy} needs the scheme in {EXTERNAL_SPECIFIC_FS.key}"
    elif not _chosen(options):
        scheme = options.value(EXTERNAL_SPECIFIC_FS)
        yield f"{EXTERNAL_SPECIFIC_FS.key}={scheme}: no folder of {EXTERNAL_PATHS.key} is there"
    if strategy is ExternalStrategy.WEIGHT_ROBIN and len(folders) > 1:
        yield from _weight_problems(options.value(EXTERNAL_WEIGHTS), len(folders))


def plain_uri(text: str) -> str:
    """A path as Java writes it: ``file:///a//b/`` is ``file:/a/b``."""
    found = _URI.fullmatch(text)
    if found is None:
        return text
    authority = f"//{found['authority']}" if found["authority"] else ""
    path = posixpath.normpath(_SLASHES.sub("/", f"/{found['path']}"))
    return f"{found['scheme']}:{authority}{path if path != '/' else ''}"


def entropy_folders(name: str) -> str:
    """Folders by the hash of a file's name, so that an object store spreads its load."""
    bits = f"{murmur3_of_bytes(name.encode()) & (1 << _ENTROPY_BITS) - 1:0{_ENTROPY_BITS}b}"
    return "/".join(bits[start:end] for start, end in pairwise(_ENTROPY_CUTS))


def _chosen(options: TableOptions) -> tuple[str, ...]:
    folders = tuple(plain_uri(folder) for folder in options.value(EXTERNAL_PATHS))
    if options.value(EXTERNAL_STRATEGY) is not ExternalStrategy.SPECIFIC_FS:
        return folders
    scheme = (options.value(EXTERNAL_SPECIFIC_FS) or "").strip().lower()
    return tuple(folder for folder in folders if folder.partition(":")[0].lower() == scheme)


def _weight_problems(weights: tuple[str, ...], folders: int) -> Iterator[str]:
    if not all(weight.isdecimal() and int(weight) > 0 for weight in weights):
        yield f"{EXTERNAL_WEIGHTS.key}={','.join(weights)}: expected whole numbers of 1 or more"
    elif weights and len(weights) != folders:
        yield f"{EXTERNAL_WEIGHTS.key} has {len(weights)} numbers for {folders} folders"


def _no_scheme(key: str, folder: str) -> str:
    return f"{key}: {folder} has no scheme; write it as file:///folder or s3://bucket/folder"
