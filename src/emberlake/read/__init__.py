"""Layer 6: from splits to Arrow batches of the asked columns."""
