"""Layer 4: what crosses processes, and its stable byte form."""

from emberlake.wire.messages import CommitMessage

__all__ = ["CommitMessage"]
