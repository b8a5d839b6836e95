"""What a commit did, for programs and for people."""

from dataclasses import fields

from emberlake.base.texts import count_text, size_text
from emberlake.commit.change import CommitResult


def commit_document(result: CommitResult) -> dict[str, int | None]:
    """All counts of a commit; ``snapshot`` is null if there was nothing to do."""
    counts = {f.name: getattr(result, f.name) for f in fields(CommitResult)}
    return {"snapshot": counts.pop("snapshot_id"), **counts}


def commit_facts(result: CommitResult) -> list[tuple[str, str]]:
    """What a commit did; counts of zero are left out."""
    facts = [("snapshot", str(result.snapshot_id))]
    for name, rows, files, size in (
        ("added", result.rows_added, result.files_added, result.bytes_added),
        ("deleted", result.rows_deleted, result.files_deleted, result.bytes_deleted),
    ):
        if rows or files:
            text = f"{count_text(rows, 'row')}, {count_text(files, 'file')}, {size_text(size)}"
            facts.append((name, text))
    if result.retries:
        facts.append(("retries", f"{result.retries}"))
    return facts
