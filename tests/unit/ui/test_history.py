"""The graph of a history: every snapshot once, tags and branches where they belong."""

from dataclasses import replace

from emberlake.spec.snapshot import CommitKind, Snapshot
from emberlake.ui.views.history import Change, History, Lane, Piece, history_of


def snapshot(number: int, mark: str = "main") -> Snapshot:
    return Snapshot(
        id=number,
        schema_id=0,
        base_manifest_list=f"base-{mark}-{number}",
        delta_manifest_list=f"delta-{mark}-{number}",
        commit_user="me",
        commit_identifier=number,
        commit_kind=CommitKind.APPEND,
        time_millis=number * 1000 + (0 if mark == "main" else 500),
        total_record_count=10 * number,
        delta_record_count=10,
    )


MAIN = tuple(snapshot(number) for number in (1, 2, 3))
ADDED = Change(files_added=1, bytes_added=100)


def shown(history: History) -> list[tuple[int, int]]:
    return [(version.lane, version.snapshot.id) for version in history.versions]


def pieces(history: History, row: int) -> set[tuple[Piece, int]]:
    return {(rail.piece, rail.lane) for rail in history.versions[row].rails}


def test_the_newest_snapshot_is_on_top_and_lines_join_neighbours() -> None:
    history = history_of([Lane("main", MAIN, latest_id=3)])

    assert shown(history) == [(0, 3), (0, 2), (0, 1)]
    assert pieces(history, 0) == {(Piece.NODE, 0), (Piece.DOWN, 0)}
    assert pieces(history, 1) == {(Piece.NODE, 0), (Piece.UP, 0), (Piece.DOWN, 0)}
    assert history.versions[0].heads == ("main",)


def test_a_branch_starts_at_the_snapshot_that_it_copied() -> None:
    branch = Lane("dev", (MAIN[1], snapshot(3, "dev")), latest_id=3)

    history = history_of([Lane("main", MAIN, latest_id=3), branch])

    assert shown(history) == [(1, 3), (0, 3), (0, 2), (0, 1)]
    assert (Piece.PAST, 1) in pieces(history, 1)
    fork = next(r for r in history.versions[2].rails if r.piece is Piece.FORK)
    assert (fork.lane, fork.to) == (1, 0)


def test_a_branch_that_has_no_commit_of_its_own_is_a_label() -> None:
    history = history_of([
        Lane("main", MAIN, latest_id=3),
        Lane("dev", (MAIN[1],), {"v1": MAIN[1]}, latest_id=2),
    ])  # fmt: skip

    assert shown(history) == [(0, 3), (0, 2), (0, 1)]
    assert history.versions[1].heads == ("dev",)
    assert history.versions[1].tags == ("v1",)


def test_the_tag_that_a_branch_starts_with_is_shown_once() -> None:
    tags = {"v1": MAIN[1]}

    history = history_of([Lane("main", MAIN, tags), Lane("dev", (MAIN[1],), tags)])

    assert history.versions[1].tags == ("v1",)


def test_an_expired_snapshot_that_a_tag_keeps_is_shown_with_a_broken_line() -> None:
    history = history_of([Lane("main", MAIN[2:], {"old": MAIN[0]}, latest_id=3)])

    assert [(v.snapshot.id, v.is_expired) for v in history.versions] == [(3, False), (1, True)]
    assert all(r.is_broken for r in history.versions[1].rails if r.piece is Piece.UP)


def test_sizes_are_counted_back_from_the_last_snapshot() -> None:
    changes = {2: ADDED, 3: Change(1, 2, 50, 250)}

    history = history_of([Lane("main", MAIN, changes=changes, latest_bytes=400)])

    assert [v.bytes for v in history.versions] == [400, 600, 500]
    assert [p.bytes for p in history.points] == [500, 600, 400]


def test_a_size_that_cannot_be_known_is_not_guessed() -> None:
    history = history_of([Lane("main", MAIN, changes={3: None, 2: ADDED}, latest_bytes=400)])

    assert [v.bytes for v in history.versions] == [400, None, None]


def test_a_gap_between_snapshots_ends_what_is_known_of_sizes() -> None:
    history = history_of([
        Lane("main", (MAIN[0], MAIN[2]), changes={3: ADDED}, latest_bytes=400)
    ])  # fmt: skip

    assert [v.bytes for v in history.versions] == [400, None]


def test_a_clock_that_went_back_draws_no_line_upwards() -> None:
    early = replace(MAIN[2], time_millis=0)

    history = history_of([Lane("main", (*MAIN[:2], early))])

    assert shown(history) == [(0, 2), (0, 1), (0, 3)]
    assert pieces(history, 2) == {(Piece.NODE, 0)}


def test_an_empty_table_has_no_history() -> None:
    assert history_of([Lane("main", ())]).versions == ()
