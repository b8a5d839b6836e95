"""Values of the protocol, compared with what Paimon's own clients and a server exchanged."""

import pytest

from emberlake.errors import InvalidInput, Unsupported
from emberlake.rest.changes import changes_from_json, changes_to_json
from emberlake.rest.commits import (
    CommitRequest,
    DataToken,
    RemoteSnapshot,
    RemoteTag,
    partition_from_json,
    partition_to_json,
)
from emberlake.rest.objects import Function, View
from emberlake.rest.values import (
    Config,
    DatabaseChanges,
    NewTable,
    RegisteredTable,
    RemoteDatabase,
    RemoteTable,
    Rename,
    page_to_json,
)
from emberlake.spec.schema_change import Move, SchemaChange
from emberlake.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from emberlake.types import AtomicType, DataField, RowType
from rest_recordings import Exchange, exchanges, labelled, name_of

COMMITS = [e for e in exchanges() if e["target"].endswith("/commit")]
CREATIONS = [*labelled("create table")]
ALTERATIONS = [*labelled("alter table", "alter table add", "alter table rename column")]
ANSWERS = [
    ("get table", RemoteTable),
    ("get branch", RemoteTable),
    ("get database", RemoteDatabase),
    ("get tag", RemoteTag),
    ("get view", View),
    ("get function", Function),
]


@pytest.mark.parametrize("exchange", COMMITS, ids=name_of)
def test_a_commit_comes_back_as_it_was_sent(exchange: Exchange) -> None:
    sent = {k: v for k, v in exchange["body"]["snapshot"].items() if v not in (None, {})}

    request = CommitRequest.from_json(exchange["body"])

    again = request.to_json()
    assert {k: v for k, v in again["snapshot"].items() if v not in (None, {})} == sent
    assert again["statistics"] == exchange["body"]["statistics"]
    assert ("baseSnapshotUuid" in again) == ("baseSnapshotUuid" in exchange["body"])
    assert request.snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER


def test_commits_of_four_clients_were_recorded() -> None:
    assert len({each["client"] for each in COMMITS}) == 4


@pytest.mark.parametrize("exchange", CREATIONS, ids=name_of)
def test_a_new_table_comes_back_as_it_was_sent(exchange: Exchange) -> None:
    request = NewTable.from_json(exchange["body"])

    assert request.to_json() == exchange["body"]


@pytest.mark.parametrize("exchange", ALTERATIONS, ids=name_of)
def test_changes_come_back_as_they_were_sent(exchange: Exchange) -> None:
    sent = [
        {k: v for k, v in each.items() if v is not None} for each in exchange["body"]["changes"]
    ]

    again = changes_to_json(changes_from_json(exchange["body"]))["changes"]

    assert [{k: v for k, v in each.items() if v is not None} for each in again] == sent


@pytest.mark.parametrize(("label", "kind"), ANSWERS)
def test_an_answer_comes_back_as_it_was_sent(label: str, kind: type[RemoteTable]) -> None:
    [exchange] = labelled(label)

    assert kind.from_json(exchange["answer"]).to_json() == exchange["answer"]


def test_the_latest_snapshot_comes_back_as_it_was_sent() -> None:
    [exchange] = labelled("load snapshot")
    answer = exchange["answer"]["snapshot"]

    assert RemoteSnapshot.from_json(answer).to_json() == answer


def test_partitions_come_back_as_they_were_sent() -> None:
    [exchange] = labelled("list partitions")
    sent = exchange["answer"]["partitions"]

    assert [partition_to_json(partition_from_json(each)) for each in sent] == sent


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("rename table", Rename),
        ("register table", RegisteredTable),
        ("alter database", DatabaseChanges),
    ],
)
def test_a_request_comes_back_as_it_was_sent(label: str, kind: type[Rename]) -> None:
    [body] = [e["body"] for e in labelled(label) if e["body"] and e["client"] == "java-1.4.2"]

    assert kind.from_json(body).to_json() == body


def test_options_of_a_client_are_between_the_defaults_and_the_overrides_of_the_server() -> None:
    config = Config.from_json(
        {"defaults": {"a": "server", "b": "server", "n": None}, "overrides": {"c": "server"}}
    )

    merged = config.merged({"b": "client", "c": "client"})

    assert merged == {"a": "server", "b": "client", "c": "server"}


def test_a_config_may_lack_overrides() -> None:
    assert Config.from_json({"defaults": {"prefix": "p"}}).merged({}) == {"prefix": "p"}


def test_a_page_has_a_list_and_a_token_even_if_there_is_none() -> None:
    assert page_to_json("tables", (), "") == {"tables": [], "nextPageToken": None}


def test_a_table_may_lack_what_is_optional() -> None:
    table = RemoteTable.from_json({
        "path": "/t", "schemaId": 3, "schema": {"fields": [{"id": 0, "name": "k", "type": "INT"}]},
        "somethingNew": 1,
    })  # fmt: skip

    assert (table.id, table.is_external, table.table_schema().id) == (None, False, 3)


def test_the_highest_id_of_a_schema_counts_nested_fields() -> None:
    row = RowType(True, (DataField(7, "x", AtomicType("INT")),))
    table = RemoteTable.from_json({
        "path": "/t", "schemaId": 0,
        "schema": {"fields": [DataField(0, "r", row).to_dict()]},
    })  # fmt: skip

    assert table.table_schema().highest_field_id == 7


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"schemaId": 0, "schema": {}},
        {"path": 1, "schemaId": 0, "schema": {}},
        {"path": "/t", "schemaId": True, "schema": {}},
        {"path": "/t", "schemaId": 0, "schema": {"fields": [{"name": "x"}]}},
        {"path": "/t", "schemaId": 0, "schema": {"partitionKeys": [1]}},
    ],
)
def test_a_table_that_cannot_be_read_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput):
        RemoteTable.from_json(value)


def test_every_change_survives() -> None:
    changes = [
        SchemaChange.add_column(["r", "x"], "INT", "new", Move.before("x", "y")),
        SchemaChange.drop_column("x"),
        SchemaChange.rename_column("x", "y"),
        SchemaChange.update_column_type("x", "BIGINT NOT NULL", True),
        SchemaChange.update_column_nullability("x", False),
        SchemaChange.update_column_comment("x", None),
        SchemaChange.update_column_default_value("x", "7"),
        SchemaChange.update_column_position(Move.last("x")),
        SchemaChange.set_option("k", "v"),
        SchemaChange.remove_option("k"),
        SchemaChange.update_comment("c"),
    ]

    assert list(changes_from_json(changes_to_json(changes))) == changes


def test_unknown_changes_are_refused() -> None:
    with pytest.raises(InvalidInput, match="explode"):
        changes_from_json({"changes": [{"action": "explode"}]})
    with pytest.raises(Unsupported, match="primary key"):
        changes_from_json({"changes": [{"action": "dropPrimaryKey"}]})


def test_a_token_is_read_under_either_name_and_does_not_show_itself() -> None:
    token = DataToken.from_json({"token": {"s3.secret-key": "hidden"}, "expiresAt": 7})

    assert token.expires_at_ms == 7
    assert "hidden" not in repr(token)
    assert DataToken.from_json(token.to_json()) == token
