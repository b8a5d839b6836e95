"""Layer 6: from messages to one atomic snapshot."""
