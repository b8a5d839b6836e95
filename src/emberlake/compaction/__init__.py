"""Compaction of buckets: which files are due, how they are rewritten, and the messages for it."""
