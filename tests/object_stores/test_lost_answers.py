"""Requests whose answers are lost: what happened is found out, and never guessed."""

import threading
from collections.abc import Callable

import pytest

from emberlake.errors import StorageError
from emberlake.io import Storage
from emberlake.io.object import publish
from emberlake.io.object.upload import PART_BYTES
from servers import Proxy

LOST = [
    (how, when) for how in ("drop", "500", "503", "429", "hang") for when in ("before", "after")
]


@pytest.mark.parametrize(("how", "when"), LOST)
def test_a_publication_whose_answer_is_lost_is_known_to_be_ours(
    storage: Storage, plain: Storage, proxy: Proxy, root: str, how: str, when: str
) -> None:
    proxy.fail(method="PUT", match="snapshot-1", how=how, when=when)

    assert storage.put_if_absent(f"{root}/snapshot-1", b"ours") is True
    assert storage.put_if_absent(f"{root}/snapshot-1", b"theirs") is False
    assert plain.read(f"{root}/snapshot-1") == b"ours"


@pytest.mark.parametrize(("how", "when"), LOST)
def test_a_publication_that_lost_the_race_is_known_to_be_lost(
    storage: Storage, plain: Storage, proxy: Proxy, root: str, how: str, when: str
) -> None:
    plain.put(f"{root}/snapshot-1", b"theirs")
    proxy.fail(method="PUT", match="snapshot-1", how=how, when=when)

    assert storage.put_if_absent(f"{root}/snapshot-1", b"ours") is False
    assert plain.read(f"{root}/snapshot-1") == b"theirs"


def test_a_publication_and_its_look_may_both_be_lost(
    storage: Storage, plain: Storage, proxy: Proxy, root: str
) -> None:
    proxy.fail(method="PUT", match="snapshot-1", how="drop", when="after")
    proxy.fail(method="GET", match="snapshot-1", how="500", times=8)

    assert storage.put_if_absent(f"{root}/snapshot-1", b"ours") is True
    assert plain.read(f"{root}/snapshot-1") == b"ours"


def test_a_refused_publication_had_no_effect_and_is_not_repeated(
    storage: Storage, plain: Storage, proxy: Proxy, root: str
) -> None:
    proxy.fail(method="PUT", match="snapshot-1", how="403-AccessDenied", when="before")

    with pytest.raises(StorageError, match=r"may not create .*snapshot-1") as raised:
        storage.put_if_absent(f"{root}/snapshot-1", b"ours")

    assert raised.value.had_no_effect
    assert not plain.exists(f"{root}/snapshot-1")
    assert len([line for line in proxy.counted()["log"] if line.startswith("PUT")]) == 1


def test_a_publication_that_is_never_answered_is_unknown(
    storage: Storage, proxy: Proxy, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "_PATIENCE_S", 0.5)
    proxy.fail(method="PUT", match="snapshot-1", how="drop", when="before", times=1000)

    with pytest.raises(StorageError, match="closed the connection without an answer") as raised:
        storage.put_if_absent(f"{root}/snapshot-1", b"ours")

    assert not raised.value.had_no_effect


def test_of_many_writers_one_wins_each_name_whatever_is_lost(
    storage: Storage, plain: Storage, proxy: Proxy, root: str
) -> None:
    for how in ("drop", "500", "503"):
        for when in ("before", "after"):
            proxy.fail(method="PUT", match="snapshot-", how=how, when=when, times=6)
    wins: list[tuple[int, int]] = []

    def commit(writer: int) -> None:
        for number in range(8):
            if storage.put_if_absent(f"{root}/snapshot-{number}", b"%d" % writer):
                wins.append((number, writer))

    threads = [threading.Thread(target=commit, args=(writer,)) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    standing = [(n, int(plain.read(f"{root}/snapshot-{n}"))) for n in range(8)]
    assert sorted(wins) == standing


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_created_file_whose_answer_is_lost_is_there(
    storage: Storage, plain: Storage, proxy: Proxy, root: str, when: str
) -> None:
    proxy.fail(method="PUT", match="manifest-1", how="drop", when=when)

    storage.create(f"{root}/manifest-1", b"entries")

    assert plain.read(f"{root}/manifest-1") == b"entries"


def written(storage: Storage, path: str, size: int) -> bytes:
    data = bytes(range(256)) * (size // 256)
    with storage.open_output(path) as output:
        for start in range(0, size, 3_000_000):
            output.write(memoryview(data)[start : start + 3_000_000])
    return data


@pytest.mark.parametrize(
    ("match", "method", "when"),
    [
        ("partNumber=2", "PUT", "before"),
        ("partNumber=2", "PUT", "after"),
        (r"uploadId=", "POST", "before"),
        (r"uploadId=", "POST", "after"),
        (r"\?uploads", "POST", "before"),
    ],
)
def test_an_upload_in_parts_survives_lost_answers(
    storage: Storage, plain: Storage, proxy: Proxy, root: str, match: str, method: str, when: str
) -> None:
    proxy.fail(method=method, match=match, how="drop", when=when)

    data = written(storage, f"{root}/data", 2 * PART_BYTES + 512)

    assert plain.read(f"{root}/data") == data


def test_an_upload_that_fails_leaves_no_file(
    storage: Storage, plain: Storage, proxy: Proxy, root: str
) -> None:
    proxy.fail(method="PUT", match="partNumber=3", how="403-AccessDenied", when="before", times=9)

    with pytest.raises(StorageError, match="may not write"):
        written(storage, f"{root}/data", 3 * PART_BYTES)

    assert not plain.exists(f"{root}/data")
    assert [line for line in proxy.counted()["log"] if line.startswith("DELETE")]


def test_a_body_that_breaks_off_is_continued(
    storage: Storage, plain: Storage, proxy: Proxy, root: str
) -> None:
    data = bytes(range(256)) * 4096
    plain.put(f"{root}/data", data)
    proxy.fail(method="GET", match="data", how="half", when="after")

    assert storage.read(f"{root}/data") == data


def test_a_deletion_that_was_interrupted_is_finished_by_the_next(
    storage: Storage, plain: Storage, proxy: Proxy, root: str
) -> None:
    for number in range(30):
        plain.put(f"{root}/t/p={number}/file", b"1")
    proxy.fail(method="POST", match="delete", how="403-AccessDenied", when="before")

    with pytest.raises(StorageError, match="may not delete"):
        storage.delete_folder(f"{root}/t")
    storage.delete_folder(f"{root}/t")

    assert not plain.exists(f"{root}/t")


@pytest.mark.parametrize("how", ["drop", "500", "hang"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_deletion_whose_answer_is_lost_is_repeated(
    storage: Storage, plain: Storage, proxy: Proxy, root: str, how: str, when: str
) -> None:
    for number in range(3):
        plain.put(f"{root}/t/{number}", b"1")
    proxy.fail(method="POST", match="delete", how=how, when=when)

    storage.delete_all(f"{root}/t/{number}" for number in range(4))

    assert not plain.exists(f"{root}/t")


def test_a_hint_is_not_repeated(
    open_proxied: Callable[..., Storage], storage: Storage, proxy: Proxy, root: str
) -> None:
    proxy.fail(method="PUT", match="LATEST", how="500", when="before", times=9)

    with pytest.raises(StorageError):
        storage.put_hint(f"{root}/LATEST", b"1")

    assert len(proxy.counted()["log"]) == 1


@pytest.mark.parametrize("times", [1, 3])
def test_a_listing_that_breaks_off_is_requested_again(
    storage: Storage, plain: Storage, proxy: Proxy, root: str, times: int
) -> None:
    paths = [f"{root}/t/{number:04}" for number in range(1100)]
    plain.create_all([(path, b"1") for path in paths])
    rule = {"method": "GET", "match": "list-type", "how": "half", "when": "after", "times": times}
    for skip in (0, 1):
        proxy.fail(**rule, skip=skip)

        assert sorted(info.path for info in storage.list_all(f"{root}/t")) == paths

    proxy.fail(**rule)
    assert [info.path for info in storage.list(f"{root}/t")] == paths
