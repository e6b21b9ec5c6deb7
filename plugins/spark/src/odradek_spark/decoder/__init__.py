"""From records of the telemetry topic to Arrow: pure functions, no Spark, no I/O."""
