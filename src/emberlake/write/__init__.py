"""From Arrow data to data files and commit messages."""
