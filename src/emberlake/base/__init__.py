"""Layer 0: hashing, parallel map, clock and ids. Nothing here knows of tables."""
