"""Layer 7: what keeps a table in shape, apart from reading and writing it."""
