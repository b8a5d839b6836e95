"""SQL in this process: queries run on DuckDB, over scans of the engine; no Spark, no JVM."""
