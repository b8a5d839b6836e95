"""The history of a table as a graph: snapshots, newest first, in one lane for each branch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import TypeAlias

from emberlake.spec.snapshot import Snapshot

Key: TypeAlias = tuple[int, int]  # the lane of a node, and the id of its snapshot


@dataclass(frozen=True)
class Change:
    """What a snapshot did to the files."""

    files_added: int = 0
    files_deleted: int = 0
    bytes_added: int = 0
    bytes_deleted: int = 0

    @property
    def bytes(self) -> int:
        return self.bytes_added - self.bytes_deleted


@dataclass(frozen=True)
class Lane:
    """The snapshots of one branch, the oldest first, and the tags on it."""

    branch: str
    snapshots: tuple[Snapshot, ...]
    tags: Mapping[str, Snapshot] = field(default_factory=dict)
    changes: Mapping[int, Change | None] = field(default_factory=dict)  # by snapshot id
    latest_id: int | None = None
    latest_bytes: int | None = None  # of the last of these snapshots


class Piece(StrEnum):
    """A piece of the rail next to a version."""

    NODE = "node"
    UP = "up"  # from the node up
    DOWN = "down"  # from the node down
    PAST = "past"  # all the way, past another lane's node
    FORK = "fork"  # from above in its lane, into the node


@dataclass(frozen=True)
class Rail:
    """One piece of the rail, in its lane; ``to`` is the lane of the node that a fork meets."""

    piece: Piece
    lane: int
    to: int = 0
    is_broken: bool = False  # snapshots in between have expired


@dataclass(frozen=True)
class Version:
    """One row of the graph."""

    snapshot: Snapshot
    branch: str
    lane: int
    tags: tuple[str, ...]
    heads: tuple[str, ...]  # the branches whose latest snapshot it is
    is_expired: bool  # only a tag keeps it
    bytes: int | None
    change: Change | None
    rails: tuple[Rail, ...]


@dataclass(frozen=True)
class Point:
    """A snapshot in the curves."""

    snapshot_id: int
    time_ms: int
    rows: int
    bytes: int | None


@dataclass(frozen=True)
class History:
    """A page of the history."""

    versions: tuple[Version, ...]
    points: tuple[Point, ...]  # of the first lane, the oldest first
    lanes: tuple[str, ...]
    older: int  # snapshots before this page
    next_before: int | None  # where the next page starts


@dataclass(frozen=True)
class _Node:
    lane: int
    snapshot: Snapshot
    is_expired: bool = False

    @property
    def key(self) -> tuple[int, int]:
        return self.lane, self.snapshot.id


def history_of(lanes: Sequence[Lane], *, older: int = 0) -> History:
    """The graph of lanes; the first one is the main one."""
    homes = _homes(lanes)
    nodes = _nodes(lanes, homes)
    order = sorted(nodes.values(), key=lambda n: (-n.snapshot.time_millis, -n.snapshot.id, n.lane))
    rails = _rails(order, _parents(lanes, homes))
    sizes = [_bytes_after(lane) for lane in lanes]
    tags, heads = _labels(lanes, homes)
    versions = tuple(
        Version(
            snapshot=node.snapshot,
            branch=lanes[node.lane].branch,
            lane=node.lane,
            tags=tuple(sorted(tags.get(node.key, ()))),
            heads=tuple(heads.get(node.key, ())),
            is_expired=node.is_expired,
            bytes=sizes[node.lane].get(node.snapshot.id),
            change=None if node.is_expired else lanes[node.lane].changes.get(node.snapshot.id),
            rails=tuple(rails[row]),
        )
        for row, node in enumerate(order)
    )
    points = tuple(
        Point(s.id, s.time_millis, s.total_record_count, sizes[0].get(s.id))
        for s in lanes[0].snapshots
    )
    first = min((s.id for s in lanes[0].snapshots), default=None)
    names = tuple(lane.branch for lane in lanes)
    return History(versions, points, names, older, first if older else None)


def _identity(snapshot: Snapshot) -> tuple[int, str]:
    # The lists of a snapshot have names of their own; the copies in branches and tags keep them.
    return snapshot.id, snapshot.delta_manifest_list


def _homes(lanes: Sequence[Lane]) -> dict[tuple[int, str], int]:
    """The lane that shows a snapshot: the first one that has it."""
    homes: dict[tuple[int, str], int] = {}
    for number, lane in enumerate(lanes):
        for snapshot in (*lane.snapshots, *lane.tags.values()):
            homes.setdefault(_identity(snapshot), number)
    return homes


def _key(snapshot: Snapshot, homes: Mapping[tuple[int, str], int]) -> Key:
    return homes[_identity(snapshot)], snapshot.id


def _nodes(lanes: Sequence[Lane], homes: Mapping[tuple[int, str], int]) -> dict[Key, _Node]:
    """Every snapshot once: one that a branch copied from the main lane belongs to the main lane."""
    nodes: dict[Key, _Node] = {}
    for lane in lanes:
        for snapshot in lane.snapshots:
            key = _key(snapshot, homes)
            nodes.setdefault(key, _Node(key[0], snapshot))
    for lane in lanes:
        for snapshot in lane.tags.values():
            key = _key(snapshot, homes)
            nodes.setdefault(key, _Node(key[0], snapshot, is_expired=True))
    return nodes


def _parents(lanes: Sequence[Lane], homes: Mapping[tuple[int, str], int]) -> dict[Key, Key]:
    """The snapshot before each one, in its own branch."""
    parents: dict[Key, Key] = {}
    for lane in lanes:
        own = {s.id: s for s in (*lane.tags.values(), *lane.snapshots)}
        for before, after in pairwise(_key(own[i], homes) for i in sorted(own)):
            parents.setdefault(after, before)
    return parents


def _rails(order: Sequence[_Node], parents: Mapping[Key, Key]) -> list[list[Rail]]:
    place = {node.key: row for row, node in enumerate(order)}
    rails: list[list[Rail]] = [[] for _ in order]
    for child, parent in parents.items():
        top, bottom, lane = place[child], place[parent], child[0]
        if top >= bottom:  # clocks that disagree: the edge would go up
            continue
        is_broken = child[1] - parent[1] > 1
        rails[top].append(Rail(Piece.DOWN, lane, is_broken=is_broken))
        for row in range(top + 1, bottom):
            rails[row].append(Rail(Piece.PAST, lane, is_broken=is_broken))
        if parent[0] == lane:
            rails[bottom].append(Rail(Piece.UP, lane, is_broken=is_broken))
        else:
            rails[bottom].append(Rail(Piece.FORK, lane, parent[0], is_broken))
    for row, node in enumerate(order):
        rails[row].append(Rail(Piece.NODE, node.lane))  # on top of the lines
    return rails


def _bytes_after(lane: Lane) -> dict[int, int]:
    """The size of the table after each snapshot, from the last one back, as far as it is known."""
    sizes: dict[int, int] = {}
    size = lane.latest_bytes
    for snapshot, later in zip(
        reversed(lane.snapshots), (None, *reversed(lane.snapshots)), strict=False
    ):
        if later is not None:
            change = lane.changes.get(later.id)
            if size is None or change is None or later.id != snapshot.id + 1:
                break
            size -= change.bytes
        if size is not None:
            sizes[snapshot.id] = size
    return sizes


def _labels(
    lanes: Sequence[Lane], homes: Mapping[tuple[int, str], int]
) -> tuple[dict[Key, list[str]], dict[Key, list[str]]]:
    """The tags of snapshots, and the branches that end with them."""
    tags: dict[Key, list[str]] = {}
    heads: dict[Key, list[str]] = {}
    for lane in lanes:
        for name, snapshot in lane.tags.items():
            on_it = tags.setdefault(_key(snapshot, homes), [])
            if name not in on_it:  # a branch copies the tag that it starts with
                on_it.append(name)
        for snapshot in lane.snapshots:
            if snapshot.id == lane.latest_id:
                heads.setdefault(_key(snapshot, homes), []).append(lane.branch)
    return tags, heads
