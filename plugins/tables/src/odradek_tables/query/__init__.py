"""Queries on the tables without Spark, in seconds: DuckDB reads the files that Delta's log names."""
