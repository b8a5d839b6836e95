"""Layer 5: which files a read or a write is about, cut into splits."""
