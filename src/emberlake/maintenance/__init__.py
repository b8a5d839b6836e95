"""What keeps a table in shape, apart from reading and writing it."""
