"""What a test needs and a machine may lack."""

import os

import pytest


def lacking(reason: str) -> None:
    """Skip a test because something is missing, but never in CI: there it must be installed.

    A clone on a machine without, say, a JDK can run the other tests.
    """
    if os.environ.get("CI") == "true":
        pytest.fail(f"this test must run under CI=true, but {reason}")
    pytest.skip(reason)
