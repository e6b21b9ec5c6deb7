"""``format("odradek")``: the telemetry topic as a Spark source, through the Kafka protocol."""
