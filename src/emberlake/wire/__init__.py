"""What crosses processes, and its stable byte form."""

from emberlake.wire.messages import BaseSnapshot, CommitMessage, WriteMode

__all__ = ["BaseSnapshot", "CommitMessage", "WriteMode"]
