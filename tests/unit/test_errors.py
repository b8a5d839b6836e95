"""Errors: their messages, and the types by which they can be caught."""

import pickle

import pytest

from emberlake import errors
from emberlake.spec.identifier import Identifier

ABOUT = {
    errors.DatabaseNotFound: {"database": "db"},
    errors.DatabaseAlreadyExists: {"database": "db"},
    errors.DatabaseNotEmpty: {"database": "db"},
    errors.TableNotFound: {"identifier": Identifier("db", "t")},
    errors.TableAlreadyExists: {"identifier": Identifier("db", "t")},
    errors.ColumnNotFound: {"column": "c"},
    errors.ColumnAlreadyExists: {"column": "c"},
    errors.TagNotFound: {"tag": "v1"},
    errors.TagAlreadyExists: {"tag": "v1"},
    errors.BranchNotFound: {"branch": "b"},
    errors.BranchAlreadyExists: {"branch": "b"},
}


@pytest.mark.parametrize(("kind", "about"), ABOUT.items(), ids=str)
def test_an_error_says_what_it_is_about_wherever_it_arrives(kind, about):
    error = kind("it is not there", **about)

    arrived = pickle.loads(pickle.dumps(error))
    explained = errors.with_context(arrived, "db.t")

    assert {name: getattr(explained, name) for name in about} == about
    assert (type(explained), str(explained)) == (kind, "db.t: it is not there")
    assert kind("it is not there").args == ("it is not there",)


@pytest.mark.parametrize(
    ("kind", "as_what"),
    [
        *((kind, ValueError) for kind in ABOUT if "Tag" in kind.__name__),
        *((kind, ValueError) for kind in ABOUT if "Branch" in kind.__name__),
        (errors.SnapshotNotFound, ValueError),
        (errors.InvalidOption, ValueError),
        (errors.DatabaseNotEmpty, ValueError),
        # What comes of a table that cannot be altered.
        (errors.ColumnNotFound, RuntimeError),
        (errors.ColumnAlreadyExists, RuntimeError),
        (errors.InvalidSchema, RuntimeError),
        (errors.InvalidOption, RuntimeError),
        (errors.Unsupported, RuntimeError),
        (errors.CommitConflict, RuntimeError),
        (errors.CommitUnknown, RuntimeError),
    ],
)
def test_errors_are_caught_as_programs_for_pypaimon_catch_them(kind, as_what):
    assert issubclass(kind, as_what)


def test_what_is_not_supported_is_never_taken_for_a_method_that_is_not_there():
    """PySpark would read a table as one partition instead of saying what is wrong."""
    assert not issubclass(errors.Unsupported, NotImplementedError)
