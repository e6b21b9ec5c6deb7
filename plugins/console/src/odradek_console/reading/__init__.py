"""The telemetry topic and the cluster, through the Kafka protocol."""
