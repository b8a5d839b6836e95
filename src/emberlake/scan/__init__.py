"""Which files a read or a write is about, cut into splits."""
