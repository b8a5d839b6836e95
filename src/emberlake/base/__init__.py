"""Hashing, Avro blocks, parallel map, clock, ids, rows. Nothing here knows about tables."""
