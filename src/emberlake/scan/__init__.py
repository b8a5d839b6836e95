"""Which files a read or a write needs, packed into splits."""
