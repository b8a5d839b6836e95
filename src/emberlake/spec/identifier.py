"""Names of tables: ``db.t``, `` `a.b`.t ``, ``db.t$branch_x``, ``db.t$snapshots``.

Databases, tables, branches and tags become folders and files. A name that could lead out of its
folder, or be mistaken for something else there, is refused before it becomes part of a path.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from emberlake.errors import InvalidIdentifier

MAIN_BRANCH: Final = "main"
SYSTEM_DATABASE: Final = "sys"
_SEPARATOR: Final = "$"
_BRANCH_PREFIX: Final = "branch_"


class NameKind(StrEnum):
    """What a name is for."""

    DATABASE = "database"
    TABLE = "table"
    BRANCH = "branch"
    TAG = "tag"
    SYSTEM_TABLE = "system table"


@dataclass(frozen=True, init=False)
class Identifier:
    """A table, or one of its branches, or one of its system tables."""

    database: str
    table: str
    branch: str | None
    system_table: str | None

    def __init__(
        self,
        database: str,
        table: str | None = None,
        branch: str | None = None,
        system_table: str | None = None,
        *,
        object: str | None = None,  # noqa: A002 - the word for it in Paimon's own clients
    ) -> None:
        """A database and an object in it: a table, or ``table$branch_x$files`` as one name.

        Args:
            database: The database.
            table: The table; it may include the next two after a ``$`` if they are not given.
            branch: The branch; None for the main one.
            system_table: The name after the last ``$``.
            object: Another name for ``table``.
        """
        _refuse(NameKind.DATABASE, database, _find_problem(database))
        table = object if table is None else table
        if branch is None and system_table is None and isinstance(table, str):
            table, branch, system_table = _split_object(table)
        _refuse(NameKind.TABLE, table, _find_table_problem(table))
        if branch is not None and branch.lower() == MAIN_BRANCH:
            branch = None
        if branch is not None:
            check_name(NameKind.BRANCH, branch)
        if system_table is not None:
            check_name(NameKind.SYSTEM_TABLE, system_table)
        # The identifier is frozen from here on.
        vars(self).update(database=database, table=table, branch=branch, system_table=system_table)

    @classmethod
    def create(
        cls,
        database: str,
        table: str,
        branch: str | None = None,
        system_table: str | None = None,
    ) -> "Identifier":
        """The same as the constructor."""
        return cls(database, table, branch, system_table)

    @classmethod
    def parse(cls, text: str) -> "Identifier":
        """Parse an identifier; the database ends at the first dot.

        A database with a dot in its name must be in backticks; a table may be.
        """
        match = _TEXT.fullmatch(text.strip())
        if match is None:
            raise InvalidIdentifier(
                f"{text!r} is not an identifier: expected database.table, "
                "with backticks around a database that contains a dot"
            )
        quoted_database, database, quoted_table, table = match.groups()
        return cls(
            database if quoted_database is None else quoted_database,
            table if quoted_table is None else quoted_table,
        )

    @classmethod
    def from_string(cls, full_name: str) -> "Identifier":
        """The same as ``parse``."""
        return cls.parse(full_name)

    @property
    def object_name(self) -> str:
        """The table with its branch and its system table: ``t$branch_x$files``."""
        parts = [self.table]
        if self.branch is not None:
            parts.append(_BRANCH_PREFIX + self.branch)
        if self.system_table is not None:
            parts.append(self.system_table)
        return _SEPARATOR.join(parts)

    @property
    def full_name(self) -> str:
        """The text that ``parse`` reads back."""
        return f"{_quote(self.database)}.{_quote(self.object_name)}"

    def __str__(self) -> str:
        return self.full_name

    # The names of these properties in pypaimon.

    @property
    def object(self) -> str:
        return self.object_name

    def get_full_name(self) -> str:
        return self.full_name

    def get_database_name(self) -> str:
        return self.database

    def get_table_name(self) -> str:
        return self.table

    def get_object_name(self) -> str:
        return self.object_name

    def get_branch_name(self) -> str | None:
        return self.branch

    def get_branch_name_or_default(self) -> str:
        return self.branch or MAIN_BRANCH

    def get_system_table_name(self) -> str | None:
        return self.system_table

    def is_system_table(self) -> bool:
        return self.system_table is not None


def check_name(kind: NameKind | str, name: str) -> None:
    """Refuse a name that cannot be given to a new database, table, branch or tag.

    Raises:
        InvalidIdentifier: the message says what is wrong with the name.
    """
    _refuse(NameKind(kind), name, _find_problem_of(NameKind(kind), name))


# Either side of the dot: in backticks or plain. A plain database ends at the first dot.
_TEXT: Final = re.compile(r"(?:`([^`]*)`|([^.`]*))\.(?:`([^`]*)`|([^`]*))", re.DOTALL)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _refuse(kind: NameKind, name: object, problem: str | None) -> None:
    if problem is not None:
        raise InvalidIdentifier(f"{kind} name {name!r} is not allowed: {problem}")


def _find_problem_of(kind: NameKind, name: str) -> str | None:
    match kind:
        case NameKind.DATABASE if name == SYSTEM_DATABASE:
            return "it is reserved for system tables"
        case NameKind.DATABASE | NameKind.TAG:
            return _find_problem(name)
        case NameKind.TABLE | NameKind.SYSTEM_TABLE:
            return _find_table_problem(name)
        case NameKind.BRANCH:
            return _find_branch_problem(name)


def _find_problem(name: object) -> str | None:
    if not isinstance(name, str):
        return f"it is a {type(name).__name__}, not a string"
    if not name.strip():
        return "it is empty"
    if name != name.strip():
        return "it begins or ends with a space"
    if _CONTROL.search(name):
        return "it contains a control character"
    forbidden = next((part for part in ("/", "\\", "..", "`") if part in name), None)
    if forbidden is not None:
        return f"it contains {forbidden!r}"
    if name.startswith("."):
        return "it begins with a dot, like a hidden folder"
    return None


def _find_table_problem(name: object) -> str | None:
    problem = _find_problem(name)
    if problem is None and isinstance(name, str) and _SEPARATOR in name:
        return f"it contains {_SEPARATOR!r}, which separates branches and system tables"
    return problem


def _find_branch_problem(name: str) -> str | None:
    problem = _find_table_problem(name)
    if problem is not None:
        return problem
    if name.lower() == MAIN_BRANCH:
        return "it is the name of the default branch"
    if name.isdigit():
        return "it has only digits, like a snapshot id"
    return None


def _split_object(name: str) -> tuple[str, str | None, str | None]:
    """Table, branch and system table of ``t$branch_x$files``."""
    table, *parts = name.split(_SEPARATOR)
    branch = None
    if parts and parts[0].startswith(_BRANCH_PREFIX):
        branch = parts.pop(0).removeprefix(_BRANCH_PREFIX)
    if len(parts) > 1:
        raise InvalidIdentifier(
            f"table name {name!r}: expected table, table$branch_<name>, table$<system table> "
            "or table$branch_<name>$<system table>"
        )
    return table, branch, parts[0] if parts else None


def _quote(name: str) -> str:
    return f"`{name}`" if "." in name else name
