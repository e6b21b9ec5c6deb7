"""Questions to the tables, answered without Spark in seconds: DuckDB reads the files that the log names."""
