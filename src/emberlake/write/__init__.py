"""Layer 6: from Arrow data to data files and commit messages."""
