"""What crosses processes, and its stable byte form."""

from emberlake.wire.messages import BaseSnapshot, CommitMessage

__all__ = ["BaseSnapshot", "CommitMessage"]
