"""What a catalog asks its server for: one method for each endpoint that clients need."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from emberlake.base.env import SYSTEM_ENV, Env
from emberlake.errors import EmberlakeError, InvalidInput, ServerError
from emberlake.io.rest.sending import Repeat, Sent, Session, send
from emberlake.rest.changes import changes_to_json
from emberlake.rest.commits import (
    CommitRequest,
    DataToken,
    RemoteSnapshot,
    RemoteTag,
)
from emberlake.rest.errors import Code
from emberlake.rest.objects import Function, View
from emberlake.rest.paths import CONFIG_PATH, Endpoint, path_of
from emberlake.rest.query_auth import QueryAuth, query_auth_json
from emberlake.rest.reading import Fields, encode_json, parse_json
from emberlake.rest.values import (
    Config,
    DatabaseChanges,
    NewTable,
    RegisteredTable,
    RemoteDatabase,
    RemoteTable,
    Rename,
    create_database_json,
    schema_to_json,
)
from emberlake.spec.identifier import Identifier
from emberlake.spec.instant import Instant
from emberlake.spec.listing import PagedList
from emberlake.spec.schema import TableSchema
from emberlake.spec.schema_change import SchemaChange

_T = TypeVar("_T")
_ANSWER: Final = "the server's answer"


@dataclass(frozen=True)
class RestApi:
    """The endpoints of one server. It travels with its session."""

    session: Session
    env: Env = field(default=SYSTEM_ENV, compare=False, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        return RestApi, (self.session,)  # clock and randomness belong to the process

    def config(self, warehouse: str) -> Config:
        """The config that the server has for clients of a warehouse."""
        query = {"warehouse": warehouse} if warehouse else {}
        sent = send(self.session, None, CONFIG_PATH, query=query, env=self.env)
        return self._decoded(sent, Config.from_json)

    # --- databases --------------------------------------------------------------------------------

    def list_databases(self) -> list[str]:
        return [*self._names(Endpoint.LIST_DATABASES, "databases")]

    def get_database(self, name: str) -> RemoteDatabase:
        return self._decoded(self._send(Endpoint.GET_DATABASE, name), RemoteDatabase.from_json)

    def create_database(self, name: str, options: Mapping[str, str]) -> None:
        body = create_database_json(name, options)
        self._create(self._send(Endpoint.CREATE_DATABASE, body=body))

    def alter_database(self, name: str, changes: DatabaseChanges) -> None:
        self._send(Endpoint.ALTER_DATABASE, name, body=changes.to_json()).body()

    def drop_database(self, name: str) -> None:
        self._delete(self._send(Endpoint.DROP_DATABASE, name))

    # --- tables -----------------------------------------------------------------------------------

    def list_tables(self, database: str) -> list[str]:
        return [*self._names(Endpoint.LIST_TABLES, "tables", database)]

    def get_table(self, identifier: Identifier) -> RemoteTable:
        sent = self._send(Endpoint.GET_TABLE, *_names_of(identifier))
        return self._decoded(sent, RemoteTable.from_json)

    def create_table(self, identifier: Identifier, schema: TableSchema) -> Sent:
        """Ask for a new table; the caller checks whether the server refused."""
        body = NewTable(identifier, schema).to_json()
        return self._send(Endpoint.CREATE_TABLE, identifier.database, body=body)

    def register_table(self, identifier: Identifier, path: str) -> None:
        body = RegisteredTable(identifier, path).to_json()
        self._send(Endpoint.REGISTER_TABLE, identifier.database, body=body).body()

    def alter_table(self, identifier: Identifier, changes: Sequence[SchemaChange]) -> None:
        names = _names_of(identifier)
        self._send(Endpoint.ALTER_TABLE, *names, body=changes_to_json(changes)).body()

    def replace_table(self, identifier: Identifier, schema: TableSchema) -> None:
        body = {"schema": schema_to_json(schema)}
        self._send(Endpoint.REPLACE_TABLE, *_names_of(identifier), body=body).body()

    def drop_table(self, identifier: Identifier) -> None:
        self._delete(self._send(Endpoint.DROP_TABLE, *_names_of(identifier)))

    def rename_table(self, source: Identifier, target: Identifier) -> Sent:
        """Ask for another name; the caller checks whether the server refused."""
        return self._send(Endpoint.RENAME_TABLE, body=Rename(source, target).to_json())

    def table_token(self, identifier: Identifier) -> tuple[DataToken, int | None]:
        """Credentials for the folder of a table, and the server's time, if it states it."""
        sent = self._send(Endpoint.GET_TOKEN, *_names_of(identifier))
        return self._decoded(sent, DataToken.from_json), sent.answer.clock_ms

    def authorize_query(self, identifier: Identifier, columns: Sequence[str]) -> QueryAuth:
        """What may be read of some columns of a table."""
        body = query_auth_json(columns)
        names = _names_of(identifier)
        sent = self._send(Endpoint.AUTHORIZE, *names, body=body, repeat=Repeat.SAFELY)
        return self._decoded(sent, QueryAuth.from_json)

    # --- snapshots --------------------------------------------------------------------------------

    def latest_snapshot(self, identifier: Identifier) -> RemoteSnapshot | None:
        """The newest snapshot; None if nothing has been committed."""
        sent = self._send(Endpoint.GET_SNAPSHOT, *_names_of(identifier))
        if sent.error is not None and sent.error.is_about_snapshot:
            return None
        return self._decoded(
            sent, lambda value: Fields(value, _ANSWER).read("snapshot", RemoteSnapshot.from_json)
        )

    def commit(self, identifier: Identifier, request: CommitRequest) -> Sent:
        """Send a commit once; the caller decides what the answer means."""
        names = _names_of(identifier)
        return self._send(Endpoint.COMMIT, *names, body=request.to_json(), repeat=Repeat.NEVER)

    def is_committed(self, sent: Sent) -> bool:
        """Whether a commit won; False if another commit took its place.

        Raises:
            ServerError: the answer does not say.
        """
        return self._decoded(sent, lambda value: Fields(value, _ANSWER).required_flag("success"))

    def rollback(self, identifier: Identifier, instant: Instant) -> None:
        body = {"instant": instant.to_dict(), "fromSnapshot": None}
        self._send(Endpoint.ROLLBACK, *_names_of(identifier), body=body).body()

    # --- branches ---------------------------------------------------------------------------------

    def list_branches(self, identifier: Identifier) -> list[str]:
        sent = self._send(Endpoint.LIST_BRANCHES, *_names_of(identifier))
        return self._decoded(sent, lambda value: [*Fields(value, _ANSWER).texts("branches")])

    def create_branch(self, identifier: Identifier, branch: str, tag: str | None) -> None:
        body = {"branch": branch, "fromTag": tag}
        self._create(self._send(Endpoint.CREATE_BRANCH, *_names_of(identifier), body=body))

    def drop_branch(self, identifier: Identifier, branch: str) -> None:
        self._delete(self._send(Endpoint.DROP_BRANCH, *_names_of(identifier), branch))

    def rename_branch(self, identifier: Identifier, branch: str, new_name: str) -> None:
        names = (*_names_of(identifier), branch)
        self._send(Endpoint.RENAME_BRANCH, *names, body={"toBranch": new_name}).body()

    def forward_branch(self, identifier: Identifier, branch: str) -> None:
        names = (*_names_of(identifier), branch)
        self._send(Endpoint.FORWARD_BRANCH, *names, body={}).body()

    # --- tags -------------------------------------------------------------------------------------

    def list_tags(self, identifier: Identifier, query: Mapping[str, str]) -> PagedList[str]:
        """One page of the names of a table's tags."""
        sent = self._send(Endpoint.LIST_TAGS, *_names_of(identifier), query=query)

        def decode(value: object) -> PagedList[str]:
            fields = Fields(value, _ANSWER)
            return PagedList([*fields.texts("tags")], fields.optional_text("nextPageToken") or None)

        return self._decoded(sent, decode)

    def create_tag(
        self, identifier: Identifier, tag: str, snapshot_id: int | None, retained: str | None
    ) -> None:
        body = {"tagName": tag, "snapshotId": snapshot_id, "timeRetained": retained}
        self._create(self._send(Endpoint.CREATE_TAG, *_names_of(identifier), body=body))

    def get_tag(self, identifier: Identifier, tag: str) -> RemoteTag:
        sent = self._send(Endpoint.GET_TAG, *_names_of(identifier), tag)
        return self._decoded(sent, RemoteTag.from_json)

    def delete_tag(self, identifier: Identifier, tag: str) -> None:
        self._delete(self._send(Endpoint.DELETE_TAG, *_names_of(identifier), tag))

    # --- views and functions ----------------------------------------------------------------------

    def list_views(self, database: str) -> list[str]:
        return [*self._names(Endpoint.LIST_VIEWS, "views", database)]

    def get_view(self, database: str, name: str) -> View:
        return self._decoded(self._send(Endpoint.GET_VIEW, database, name), View.from_json)

    def list_functions(self, database: str) -> list[str]:
        return [*self._names(Endpoint.LIST_FUNCTIONS, "functions", database)]

    def get_function(self, database: str, name: str) -> Function:
        sent = self._send(Endpoint.GET_FUNCTION, database, name)
        return self._decoded(sent, Function.from_json)

    # --- sending ----------------------------------------------------------------------------------

    def _send(
        self,
        endpoint: Endpoint,
        *names: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        repeat: Repeat | None = None,
    ) -> Sent:
        return send(
            self.session,
            endpoint,
            path_of(endpoint, self.session.prefix, *names),
            query=query,
            body=None if body is None else encode_json(body),
            repeat=repeat,
            env=self.env,
        )

    def _names(self, endpoint: Endpoint, key: str, *names: str) -> Iterator[str]:
        """The names on all pages. A page may be empty, but a token must not come twice."""
        seen: set[str] = set()
        query: dict[str, str] = {}
        while True:
            sent = self._send(endpoint, *names, query=query)
            fields = self._decoded(sent, lambda value: Fields(value, _ANSWER))
            try:
                page, token = fields.texts(key), fields.optional_text("nextPageToken")
            except InvalidInput as error:
                raise ServerError(f"{sent.doing}: {error}") from error
            yield from page
            if not token:
                return
            if token in seen:
                raise ServerError(f"{sent.doing} gives the page after {token!r} again and again")
            seen.add(token)
            query = {"pageToken": token}

    def _decoded(self, sent: Sent, decode: Callable[[Any], _T]) -> _T:
        body = sent.body()
        try:
            return decode(parse_json(body, _ANSWER))
        except EmberlakeError as error:
            raise ServerError(
                f"{sent.doing} was answered, but not in the words of the protocol: {error}"
            ) from error

    def _create(self, sent: Sent) -> None:
        # An earlier attempt was answered with "try later", but it did take effect.
        if sent.error is not None and sent.error.code == Code.CONFLICT and sent.is_repeated:
            return
        sent.body()

    def _delete(self, sent: Sent) -> None:
        if sent.error is not None and sent.error.code == Code.NOT_FOUND and sent.is_repeated:
            return
        sent.body()


def _names_of(identifier: Identifier) -> tuple[str, str]:
    """The names in a path. A branch is part of the table's name; a system table is its table."""
    table = Identifier(identifier.database, identifier.table, identifier.branch)
    return table.database, table.object_name
