import errno
import io
import os
from pathlib import Path

import pytest

from emberlake.errors import FileNotFound, StorageError
from emberlake.io import LocalStorage


def test_a_file_scheme_names_the_same_file(tmp_path: Path) -> None:
    LocalStorage().put(f"{tmp_path}/a b%20", b"1")

    assert LocalStorage().read(f"file:{tmp_path}/a b%20") == b"1"
    assert LocalStorage().read(f"file://{tmp_path}/a b%20") == b"1"


def test_the_paths_of_a_listing_keep_the_form_that_was_asked_for(tmp_path: Path) -> None:
    LocalStorage().put(f"{tmp_path}/file", b"1")

    (info,) = LocalStorage().list(f"file:{tmp_path}/")

    assert info.path == f"file:{tmp_path}/file"


def test_a_publication_whose_flush_fails_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", fail)

    with pytest.raises(StorageError, match=r"cannot publish .*snapshot-1: disk on fire"):
        LocalStorage().put_if_absent(f"{tmp_path}/snapshot-1", b"1")

    assert list(tmp_path.iterdir()) == []


def test_a_file_is_published_once_it_and_what_it_refers_to_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    flush, link = os.fsync, os.link

    def note_flush(handle: int) -> None:
        flush(handle)
        steps.append(Path(f"/proc/self/fd/{handle}").readlink().stem)

    def note_link(source: str, target: str) -> None:
        link(source, target)
        steps.append("link")

    monkeypatch.setattr(os, "fsync", note_flush)
    monkeypatch.setattr(os, "link", note_link)
    storage = LocalStorage()
    needed = [f"{tmp_path}/one", f"{tmp_path}/two"]
    for path in needed:
        storage.create(path, b"1")

    storage.put_if_absent(f"{tmp_path}/snapshot", b"1", needed)

    assert steps[:2] == ["one", "two"]
    assert steps[2].startswith(".snapshot")
    assert steps[3] == "link"
    assert len(steps) == 5  # and the folder


def test_files_that_are_put_together_are_all_on_the_disk_before_one_is_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    flush, link = os.fsync, os.link
    monkeypatch.setattr(os, "fsync", lambda handle: (flush(handle), steps.append("flush"))[0])
    monkeypatch.setattr(os, "link", lambda *a, **k: (link(*a, **k), steps.append("link"))[0])

    LocalStorage().put_each_if_absent([(f"{tmp_path}/{name}/snapshot-1", b"1") for name in "ab"])

    assert steps == ["flush", "flush", "link", "link", "flush", "flush"]  # at the end the folders


def test_of_files_that_are_put_together_one_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link
    monkeypatch.setattr(
        os, "link", lambda *a, **k: fail() if a[1].endswith("/b") else link(*a, **k)
    )
    (tmp_path / "file").touch()

    linked, failed, unwritten = LocalStorage().put_each_if_absent(
        [(f"{tmp_path}/{name}", b"1") for name in ("a", "b", "file/c")]
    )

    assert linked is True
    assert isinstance(failed, StorageError)
    assert isinstance(unwritten, StorageError)
    assert (failed.had_no_effect, unwritten.had_no_effect) == (False, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "file"]


def test_files_that_are_put_together_and_cannot_be_flushed_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", fail)

    outcomes = LocalStorage().put_each_if_absent([(f"{tmp_path}/{name}", b"1") for name in "ab"])

    assert all(isinstance(each, StorageError) and each.had_no_effect for each in outcomes)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [errno.EOPNOTSUPP, errno.EISDIR])
def test_a_disk_without_unnamed_files_gets_temporary_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    open_file = os.open

    def refuse_unnamed(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(code, "no such files here")
        return open_file(path, flags, mode)

    monkeypatch.setattr(os, "open", refuse_unnamed)
    files = [(f"{tmp_path}/{name}", name.encode()) for name in "ab"]

    first, second = (LocalStorage().put_each_if_absent(files) for _ in range(2))

    assert (first, second) == ([True, True], [False, False])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"a", "b": b"b"}


def test_more_files_than_may_be_open_are_put_in_parts(tmp_path: Path) -> None:
    files = [(f"{tmp_path}/{number}", b"1") for number in range(200)]

    assert LocalStorage().put_each_if_absent(files) == [True] * 200
    assert len(list(tmp_path.iterdir())) == 200


def test_a_publication_that_fails_before_it_is_visible_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", fail)
    with pytest.raises(StorageError) as during:
        LocalStorage().put_if_absent(f"{tmp_path}/snapshot-1", b"1")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StorageError) as before:
        LocalStorage().put_if_absent(f"{tmp_path}/snapshot-1", b"1")

    assert (before.value.had_no_effect, during.value.had_no_effect) == (True, False)
    assert list(tmp_path.iterdir()) == []


def test_a_hint_of_another_user_in_a_shared_folder_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hint = tmp_path / "LATEST"
    hint.write_bytes(b"1")
    file = io.FileIO

    def refuse_what_is_there(path: str, mode: str) -> io.FileIO:
        if mode == "wb" and path == str(hint):
            raise PermissionError
        return file(path, mode)

    monkeypatch.setattr(io, "FileIO", refuse_what_is_there)

    LocalStorage().put_hint(str(hint), b"22")

    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"22"]


def test_a_hint_is_never_seen_empty_or_half_written_while_it_counts(tmp_path: Path) -> None:
    hint = tmp_path / "LATEST"
    storage = LocalStorage()
    storage.put_hint(str(hint), b"10")
    inode, opened = hint.stat().st_ino, hint.open("rb", buffering=0)
    for number in (*range(11, 20), 19, 18):
        storage.put_hint(str(hint), b"%d" % number)

        opened.seek(0)
        assert opened.read() == b"%d" % number
        assert hint.stat().st_ino == inode
    for other in (b"20", b"100", b"9", b"", b"7"):
        storage.put_hint(str(hint), other)

        assert hint.read_bytes() == other
    opened.close()


@pytest.mark.parametrize("problem", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_a_replacement_that_is_cut_off_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    def stop(*_: object) -> None:
        raise problem

    monkeypatch.setattr(os, "fsync", stop)

    with pytest.raises((StorageError, KeyboardInterrupt)):
        LocalStorage().put(f"{tmp_path}/tag", b"1")

    assert list(tmp_path.iterdir()) == []


def test_an_output_whose_flush_fails_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", fail)

    with (
        pytest.raises(StorageError, match="disk on fire"),
        LocalStorage().open_output(f"{tmp_path}/data") as sink,
    ):
        sink.write(b"1")

    assert list(tmp_path.iterdir()) == []


def test_a_link_whose_answer_got_lost_still_counts_as_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def link_and_claim_that_it_exists(source: str, target: str) -> None:
        link(source, target)
        raise FileExistsError

    monkeypatch.setattr(os, "link", link_and_claim_that_it_exists)

    assert LocalStorage().put_if_absent(f"{tmp_path}/snapshot-1", b"1") is True
    assert [p.name for p in tmp_path.iterdir()] == ["snapshot-1"]


def test_a_replacement_that_fails_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LocalStorage().put(f"{tmp_path}/hint", b"1")
    monkeypatch.setattr(os, "replace", fail)

    with pytest.raises(StorageError, match="disk on fire"):
        LocalStorage().put(f"{tmp_path}/hint", b"2")

    assert [p.read_bytes() for p in tmp_path.iterdir()] == [b"1"]


def test_a_temporary_file_is_hidden_and_beside_its_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(os, "link", lambda source, target: seen.append(source))

    LocalStorage().put_if_absent(f"{tmp_path}/snapshot-1", b"1")

    assert seen[0].startswith(f"{tmp_path}/.snapshot-1.")
    assert seen[0].endswith(".tmp")


def test_reading_a_folder_is_a_storage_error(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot read"):
        LocalStorage().read(str(tmp_path))


def test_a_file_deleted_while_listing_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")

    assert list(LocalStorage().list(str(tmp_path))) == []


def test_a_missing_file_keeps_its_path_when_pickled(tmp_path: Path) -> None:
    with pytest.raises(FileNotFound) as raised:
        LocalStorage().read(f"{tmp_path}/nothing")

    assert raised.value.path == f"{tmp_path}/nothing"


def fail(*_: object) -> None:
    raise OSError(5, "disk on fire")
