"""From splits to Arrow batches of the asked columns."""
