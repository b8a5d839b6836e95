"""Partitions, computed from the manifests of the latest snapshot.

What clients report about partitions is not used: each client spells values in its own way.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from emberlake.catalog.partitions import list_partition_page
from emberlake.errors import InvalidInput
from emberlake.rest.commits import partition_to_json
from emberlake.rest.reading import Fields
from emberlake.rest.values import page_to_json
from emberlake.server.calls import (
    Call,
    Paging,
    Refused,
    Services,
    name_matcher,
    page_of_names,
)
from emberlake.server.records import TableRecord
from emberlake.spec.listing import Partition

_MOST_NAMES: Final = 1000


def list_partitions(services: Services, call: Call) -> Mapping[str, Any]:
    """The partitions of a table by name, a page at a time."""
    paging = Paging.of(call.query)
    matches = name_matcher(call.query.get("partitionNamePattern"))
    found = _find(services, call)
    partitions = {n: p for n, p in _partitions(services, call, found).items() if matches(n)}
    page, token = page_of_names([*partitions], paging)
    return page_to_json("partitions", [partition_to_json(partitions[n]) for n in page], token)


def list_partitions_by_names(services: Services, call: Call) -> Mapping[str, Any]:
    """The partitions that are asked for, as far as they are there."""
    specs = _specs(call, "specs")
    if len(specs) > _MOST_NAMES:
        raise InvalidInput(f"at most {_MOST_NAMES} partitions can be asked for at once")
    found = _find(services, call)
    partitions = _partitions(services, call, found)
    names = [_name(found_keys(services, call, found), spec) for spec in specs]
    return {"partitions": [partition_to_json(partitions[n]) for n in names if n in partitions]}


def list_partitions_by_filter(services: Services, call: Call) -> Mapping[str, Any]:
    """All partitions, whatever the filter: the protocol allows more than was asked for."""
    fields = Fields(call.body or {}, "the request")
    paging = Paging.given(fields.raw("maxResults"), fields.optional_text("pageToken"))
    matches = name_matcher(fields.optional_text("partitionNamePattern"))
    found = _find(services, call)
    partitions = {n: p for n, p in _partitions(services, call, found).items() if matches(n)}
    page, token = page_of_names([*partitions], paging)
    return page_to_json("partitions", [partition_to_json(partitions[n]) for n in page], token)


def mark_partitions_done(services: Services, call: Call) -> None:
    """Note that partitions are complete."""
    specs = _specs(call, "specs")
    found = _find(services, call)
    keys = found_keys(services, call, found)
    names = [_name(keys, spec) for spec in specs]
    with services.database.transaction() as session:
        for name in names:
            session.run(
                "INSERT INTO done_partitions (table_id, branch, name, done_at, done_by) "
                "VALUES (?, ?, ?, ?, ?) ON CONFLICT (table_id, branch, name) DO NOTHING",
                found.id,
                found.branch,
                name,
                services.env.now_ms(),
                call.principal.name,
            )


def refuse_registration(services: Services, call: Call) -> None:
    """Partitions are registered for format tables only, which this server does not have."""
    del services, call
    raise Refused(501, "partitions of tables come with commits; they cannot be registered")


def found_keys(services: Services, call: Call, table: TableRecord) -> tuple[str, ...]:
    """The partition columns of a table."""
    return services.heads.store(call.warehouse, table).schema.partition_keys


def _find(services: Services, call: Call) -> TableRecord:
    return services.heads.find(call.warehouse, call.names["database"], call.names["table"])


def _partitions(services: Services, call: Call, table: TableRecord) -> dict[str, Partition]:
    store = services.heads.store(call.warehouse, table)
    keys = store.schema.partition_keys
    if not keys:
        return {}
    rows = services.database.run(
        "SELECT name FROM done_partitions WHERE table_id = ? AND branch = ?", table.id, table.branch
    )
    done = {name for (name,) in rows}
    return {
        name: replace(each, done=name in done)
        for each in list_partition_page(store).elements
        for name in [_name(keys, each.spec)]
    }


def _specs(call: Call, key: str) -> list[Mapping[str, str]]:
    specs = Fields(call.body, "the request").objects(key)
    if not all(isinstance(spec, Mapping) for spec in specs):
        raise InvalidInput(f"{key} must be a list of partitions: column and value, as texts")
    return [{str(k): str(v) for k, v in spec.items()} for spec in specs]


def _name(keys: Iterable[str], spec: Mapping[str, str]) -> str:
    missing = [key for key in keys if key not in spec]
    if missing:
        raise InvalidInput(f"a partition lacks a value for {', '.join(missing)}")
    return "/".join(f"{key}={spec[key]}" for key in keys)
