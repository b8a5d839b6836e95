"""Statements that move no rows: values, their parsers, and what carries them out on a catalog."""

from emberlake.sql.commands.parse import parse_command
from emberlake.sql.commands.run import run_command

__all__ = ["parse_command", "run_command"]
