"""Everything that keeps a table in shape, apart from reading and writing it."""
