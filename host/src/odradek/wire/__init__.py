"""The Kafka protocol: bytes to messages and back, no I/O."""
