"""Messages that cross processes, and their stable byte form."""

from emberlake.wire.messages import BaseSnapshot, CommitMessage, VectorEdit, WriteMode

__all__ = ["BaseSnapshot", "CommitMessage", "VectorEdit", "WriteMode"]
