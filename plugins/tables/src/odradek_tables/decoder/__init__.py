"""Decodes records of the telemetry topic into Arrow: pure functions, without Spark and I/O."""
