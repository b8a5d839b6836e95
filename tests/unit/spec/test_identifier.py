import pickle
from dataclasses import replace

import pytest

from emberlake.errors import InvalidIdentifier
from emberlake.spec.identifier import Identifier, check_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("db.t", Identifier("db", "t")),
        (" db.t ", Identifier("db", "t")),
        ("`a.b`.`t`", Identifier("a.b", "t")),
        ("`a.b`.t", Identifier("a.b", "t")),
        ("a.`b.c`", Identifier("a", "b.c")),
        ("a.b.c", Identifier("a", "b.c")),
        ("`a.b`.c.d", Identifier("a.b", "c.d")),
        ("db.t$branch_x", Identifier("db", "t", "x")),
        ("db.t$branch_main", Identifier("db", "t")),
        ("db.t$snapshots", Identifier("db", "t", None, "snapshots")),
        ("db.t$branch_x$files", Identifier("db", "t", "x", "files")),
        ("db.my table", Identifier("db", "my table")),
        ("sys.all_tables", Identifier("sys", "all_tables")),
    ],
)
def test_an_identifier_is_parsed_and_written_again(text, expected):
    identifier = Identifier.parse(text)

    assert identifier == expected
    assert Identifier.from_string(identifier.get_full_name()) == identifier
    assert pickle.loads(pickle.dumps(identifier)) == identifier


@pytest.mark.parametrize(
    "text",
    ["", "t", "a..c", "`a.b.t", "a.", ".t", "a.t$x$y", "a.t$branch_x$y$z", "a.t$", "`a``b`.t"],
)
def test_a_text_that_is_no_identifier_is_refused(text):
    with pytest.raises(InvalidIdentifier):
        Identifier.parse(text)


def test_the_parts_have_the_names_that_pypaimon_gives_them():
    identifier = Identifier.create("db", "t$branch_x$files")

    assert identifier.get_database_name() == "db"
    assert identifier.get_table_name() == "t"
    assert identifier.get_object_name() == "t$branch_x$files"
    assert identifier.get_branch_name() == "x"
    assert identifier.get_system_table_name() == "files"
    assert identifier.is_system_table()
    assert Identifier.create("db", "t", branch="x").get_full_name() == "db.t$branch_x"
    assert Identifier("db", "t").get_branch_name_or_default() == "main"
    assert identifier.object == "t$branch_x$files"
    assert str(identifier) == "db.t$branch_x$files"


@pytest.mark.parametrize(
    "identifier",
    [
        Identifier("db", "t$branch_x$files"),
        Identifier("db", "t", "x", "files"),
        Identifier(database="db", object="t$branch_x$files"),
        Identifier(database="db", table="t", branch="x", system_table="files"),
        Identifier.create("db", "t$branch_x$files"),
        Identifier.create("db", table="t", branch="x", system_table="files"),
        replace(Identifier("db", "t"), branch="x", system_table="files"),
    ],
)
def test_an_identifier_can_be_made_in_many_ways(identifier):
    assert identifier == Identifier.parse("db.t$branch_x$files")
    assert hash(identifier) == hash(Identifier.parse("db.t$branch_x$files"))


def test_a_name_that_has_its_parts_has_them_once():
    with pytest.raises(InvalidIdentifier, match="branches"):
        Identifier("db", "t$files", "x")


TRICKS = [
    "",
    " ",
    " a",
    ".",
    "..",
    "a/b",
    "../a",
    "a\\b",
    "a..b",
    ".hidden",
    "a\nb",
    "a\0",
    "a`b",
    None,
    7,
]


@pytest.mark.parametrize("kind", ["database", "table", "branch", "tag"])
@pytest.mark.parametrize("name", TRICKS)
def test_a_name_that_could_leave_its_folder_is_refused(kind, name):
    with pytest.raises(InvalidIdentifier, match=f"{kind} name"):
        check_name(kind, name)


@pytest.mark.parametrize("name", [n for n in TRICKS if isinstance(n, str)])
def test_an_identifier_with_such_a_name_cannot_be_made(name):
    with pytest.raises(InvalidIdentifier):
        Identifier("db", name)
    with pytest.raises(InvalidIdentifier):
        Identifier(name, "t")
    with pytest.raises(InvalidIdentifier):
        Identifier("db", "t", name)


@pytest.mark.parametrize(
    ("kind", "name", "problem"),
    [
        ("database", "sys", "reserved"),
        ("table", "a$b", "branches"),
        ("branch", "main", "default branch"),
        ("branch", "MAIN", "default branch"),
        ("branch", "123", "digits"),
        ("branch", "a$b", "branches"),
    ],
)
def test_a_reserved_name_is_refused_with_the_reason(kind, name, problem):
    with pytest.raises(InvalidIdentifier, match=problem):
        check_name(kind, name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("database", "a.b"),
        ("table", "naïve table"),
        ("branch", "v1"),
        ("tag", "2026-06-26"),
        ("tag", "1"),
        ("table", "x.db"),
    ],
)
def test_an_ordinary_name_is_allowed(kind, name):
    check_name(kind, name)
