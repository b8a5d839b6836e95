"""Delete expired tags. Spec: "Tag".

Only the tags are deleted. Files that nobody else needs become orphans.
"""

from datetime import datetime

from emberlake.base.times import wall_clock
from emberlake.spec.layout import TAG_PREFIX
from emberlake.store.table_store import TableStore


def expire_tags(store: TableStore, older_than_ms: int | None, *, dry_run: bool) -> list[str]:
    """Delete the tags whose retention time has passed, and return their names.

    Args:
        store: The table.
        older_than_ms: If given, tags created before it go too, whatever their retention time.
        dry_run: Only report which tags would go.
    """
    now = wall_clock(store.env.now_ms())
    made = {} if older_than_ms is None else _written(store)
    before = None if older_than_ms is None else wall_clock(older_than_ms)
    expired = [
        name
        for name, tag in store.tags.list().items()
        if tag.has_expired(now) or _is_older(tag.tag_create_time or made.get(name), before)
    ]
    if not dry_run:
        for name in expired:
            store.tags.delete(name)
    return expired


def _written(store: TableStore) -> dict[str, datetime]:
    """When the files of tags were written: a tag without a retention time does not record it."""
    return {
        info.name.removeprefix(TAG_PREFIX): wall_clock(info.modified_ms)
        for info in store.storage.list(store.layout.tag_folder)
        if not info.is_folder
    }


def _is_older(made: datetime | None, before: datetime | None) -> bool:
    return made is not None and before is not None and made < before
