"""Where keys are: tables whose key is unique over partitions that it does not name."""
