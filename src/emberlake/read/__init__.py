"""Read splits into Arrow batches of the requested columns."""
