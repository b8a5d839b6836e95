"""The back end of SQL on Spark: queries of the lake become native scans in the user's session."""
