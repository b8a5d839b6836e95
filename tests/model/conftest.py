"""Tables live in memory, and on S3."""

from anywhere import *  # noqa: F403
