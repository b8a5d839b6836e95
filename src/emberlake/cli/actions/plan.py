"""Explain a read: which files it opens, which it skips, and why."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from emberlake.base.texts import size_text
from emberlake.cli.actions.reading import ReadRequest, with_request
from emberlake.cli.report import Block, Column, Facts, Grid, Note, Report, numbers, words
from emberlake.cli.session import Session
from emberlake.scan.explanation import ExplainedFile, Explanation, Reason

_SHOWN_FILES: Final = 20  # of the files that are read, and of those that are skipped
_SHORT: Final = {
    Reason.READ: "read",
    Reason.ALL_ROWS_MATCH: "read, all match",
    Reason.PARTITION: "skip: partition",
    Reason.BUCKET: "skip: bucket",
    Reason.STATISTICS: "skip: statistics",
    Reason.LIMIT: "skip: limit",
}


def explain(session: Session, request: ReadRequest, *, all_files: bool) -> Report:
    """Explain what a read would do."""
    builder = with_request(session.table(request.table), request)
    plan = builder.explain(verbose=True)
    blocks: list[Block] = [Facts(_facts(request, plan)), _reasons(plan)]
    for files, what in ((plan.files_read, "read"), (plan.files_skipped, "skipped")):
        shown = files if all_files else files[:_SHOWN_FILES]
        if shown:
            blocks.append(_file_grid(plan, shown))
        if left := len(files) - len(shown):
            blocks.append(Note(f"... and {left:,} more {what}; --all lists them"))
    return Report(_document(request, plan), blocks)


def _facts(request: ReadRequest, plan: Explanation) -> list[tuple[str, str]]:
    read = plan.files_read
    rows, size = sum(f.row_count for f in read), sum(f.file_size for f in read)
    files = f"{len(read):,} of {len(plan.files):,} read: {rows:,} rows, {size_text(size)}"
    return [
        ("table", request.table),
        ("snapshot", "none yet" if plan.snapshot_id is None else str(plan.snapshot_id)),
        ("filter", plan.predicate or "none"),
        ("manifests", f"{plan.manifests_read:,} of {plan.manifests:,} read"),
        ("files", files),
        ("splits", f"{plan.split_count:,}"),
    ]


def _reasons(plan: Explanation) -> Grid:
    counts = Counter(f.reason for f in plan.files)
    rows = Counter[Reason]()
    sizes = Counter[Reason]()
    for file in plan.files:
        rows[file.reason] += file.row_count
        sizes[file.reason] += file.file_size
    return Grid(
        [words("what", 30), numbers("files"), numbers("rows"), numbers("size")],
        [
            (str(reason), f"{counts[reason]:,}", f"{rows[reason]:,}", size_text(sizes[reason]))
            for reason in Reason
            if counts[reason]
        ],
        empty="the table has no files",
    )


def _file_grid(plan: Explanation, files: Sequence[ExplainedFile]) -> Grid:
    root = plan.table_path.rstrip("/") + "/"
    return Grid(
        [Column("what"), numbers("rows"), numbers("size"), words("file", 20)],
        [
            (
                _SHORT[f.reason],
                f"{f.row_count:,}",
                size_text(f.file_size),
                f.path.removeprefix(root),
            )
            for f in files
        ],
    )


def _document(request: ReadRequest, plan: Explanation) -> dict[str, object]:
    read = plan.files_read
    return {
        "table": request.table,
        "snapshot": plan.snapshot_id,
        "filter": plan.predicate,
        "columns": list(plan.columns),
        "limit": plan.limit,
        "manifests": plan.manifests,
        "manifests_read": plan.manifests_read,
        "splits": plan.split_count,
        "files_read": len(read),
        "rows_read": sum(f.row_count for f in read),
        "bytes_read": sum(f.file_size for f in read),
        "files": [
            {
                "path": f.path,
                "rows": f.row_count,
                "bytes": f.file_size,
                "reason": f.reason.name.lower(),
                "detail": str(f.reason),
            }
            for f in plan.files
        ],
    }
