"""Tables live where a test says."""

from anywhere import bucket, home

__all__ = ["bucket", "home"]
