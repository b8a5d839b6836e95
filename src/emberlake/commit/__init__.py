"""From messages to one atomic snapshot."""
