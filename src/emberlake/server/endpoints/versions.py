"""Tags, branches and consumers: files of the table, which clients write too."""

import re
from collections.abc import Mapping
from typing import Any, Final

from emberlake.base.times import to_millis
from emberlake.errors import InvalidInput, TagNotFound
from emberlake.maintenance.branches import create_branch as create_branch_of
from emberlake.maintenance.branches import fast_forward
from emberlake.rest.commits import RemoteTag
from emberlake.rest.reading import Fields
from emberlake.rest.values import page_to_json
from emberlake.server.calls import Call, Paging, Services, name_matcher, page_of_names
from emberlake.server.records import TableRecord
from emberlake.spec.identifier import NameKind, check_name
from emberlake.spec.layout import CONSUMER_PREFIX
from emberlake.spec.tag import format_duration
from emberlake.store.consumers import ConsumerStore
from emberlake.store.table_store import TableStore
from emberlake.table.managers import TagManager
from emberlake.table.versions import VersionedTable

_CONSUMER: Final = re.compile(r"[^/\\\x00]{1,255}")


# --- tags -----------------------------------------------------------------------------------------


def list_tags(services: Services, call: Call) -> Mapping[str, Any]:
    """The names of tags, a page at a time."""
    _, store = _open(services, call)
    prefix = call.query.get("tagNamePrefix") or ""
    matches = name_matcher(prefix if prefix.endswith("%") else f"{prefix}%" if prefix else None)
    names = [name for name in store.tags.names() if matches(name)]
    page, token = page_of_names(names, Paging.of(call.query))
    return page_to_json("tags", page, token)


def create_tag(services: Services, call: Call) -> None:
    """Keep a snapshot, by default the latest, under a name."""
    fields = Fields(call.body, "the request")
    name = fields.text("tagName")
    check_name(NameKind.TAG, name)
    _, store = _open(services, call)
    VersionedTable(store).create_tag(
        name,
        fields.optional_integer("snapshotId"),
        ignore_if_exists=False,
        time_retained=fields.optional_text("timeRetained"),
    )


def get_tag(services: Services, call: Call) -> Mapping[str, Any]:
    """A tag with its snapshot."""
    _, store = _open(services, call)
    name = _tag_name(call)
    tag = TagManager(store).load_tag(name)
    created, retained = tag.tag_create_time, tag.tag_time_retained
    return RemoteTag(
        name,
        tag.trim_to_snapshot(),
        None if created is None else to_millis(created),
        None if retained is None else format_duration(retained),
    ).to_json()


def delete_tag(services: Services, call: Call) -> None:
    """Delete a tag."""
    _, store = _open(services, call)
    name = _tag_name(call)
    if not TagManager(store).delete_tag(name):
        raise TagNotFound(f"tag {name!r} does not exist", tag=name)


# --- branches -------------------------------------------------------------------------------------


def list_branches(services: Services, call: Call) -> Mapping[str, Any]:
    """The names of all branches but the main one."""
    _, store = _open(services, call)
    return {"branches": store.branches.list()}


def create_branch(services: Services, call: Call) -> None:
    """Create a branch: from a tag, or empty."""
    fields = Fields(call.body, "the request")
    branch, tag = fields.text("branch"), fields.optional_text("fromTag")
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    check_name(NameKind.BRANCH, branch)
    if tag is not None:
        check_name(NameKind.TAG, tag)
    with services.heads.locked(call.warehouse, found) as table:
        store = services.heads.store(call.warehouse, table)
        create_branch_of(store, branch, tag, ignore_if_exists=False)
        services.heads.forget_branch(table, branch)  # of an earlier branch with this name
        services.heads.add_branch(call.warehouse, table, branch)


def drop_branch(services: Services, call: Call) -> None:
    """Delete a branch."""
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    with services.heads.locked(call.warehouse, found) as table:
        store = services.heads.store(call.warehouse, table)
        store.branches.delete(call.names["branch"])
        services.heads.forget_branch(table, call.names["branch"])


def rename_branch(services: Services, call: Call) -> None:
    """Give a branch another name."""
    new = Fields(call.body, "the request").text("toBranch")
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    with services.heads.locked(call.warehouse, found) as table:
        store = services.heads.store(call.warehouse, table)
        store.branches.rename(call.names["branch"], new)
        services.heads.forget_branch(table, call.names["branch"])
        services.heads.forget_branch(table, new)
        services.heads.add_branch(call.warehouse, table, new)


def forward_branch(services: Services, call: Call) -> None:
    """Give the table the history of a branch."""
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    with services.heads.locked(call.warehouse, found) as table:
        store = services.heads.store(call.warehouse, table)
        store.branches.check_exists(call.names["branch"])
        services.heads.mark_pending(table)
        try:
            fast_forward(store, call.names["branch"])
        finally:
            services.heads.reread(call.warehouse, table)


# --- consumers ------------------------------------------------------------------------------------


def list_consumers(services: Services, call: Call) -> Mapping[str, Any]:
    """What each streaming reader reads next."""
    found, _ = _open(services, call)
    consumers = ConsumerStore(call.warehouse.files, found.layout)
    names = sorted(
        info.name.removeprefix(CONSUMER_PREFIX)
        for info in call.warehouse.files.list(found.layout.consumer_folder)
        if info.name.startswith(CONSUMER_PREFIX) and not info.is_folder
    )
    page, token = page_of_names(names, Paging.of(call.query))
    positions = [(name, consumers.next_snapshot(name)) for name in page]
    return page_to_json(
        "consumers",
        [{"consumerId": name, "nextSnapshot": at} for name, at in positions if at is not None],
        token,
    )


def reset_consumer(services: Services, call: Call) -> None:
    """Set what a streaming reader reads next, or forget the reader."""
    fields = Fields(call.body, "the request")
    name, following = fields.text("consumerId"), fields.optional_integer("nextSnapshotId")
    if not _CONSUMER.fullmatch(name):
        raise InvalidInput(f"{name!r} is not a consumer id: it must fit in a file name")
    found, _ = _open(services, call)
    if following is None:
        call.warehouse.files.delete(found.layout.consumer(name))
    else:
        ConsumerStore(call.warehouse.files, found.layout).save(name, following)


def _tag_name(call: Call) -> str:
    """The tag of the path. It becomes part of a file name, so it is checked first."""
    check_name(NameKind.TAG, call.names["tag"])
    return call.names["tag"]


def _open(services: Services, call: Call) -> tuple[TableRecord, TableStore]:
    found = services.heads.find(call.warehouse, call.names["database"], call.names["table"])
    return found, services.heads.store(call.warehouse, found)
