"""The Kafka protocol: bytes to messages and back, without I/O."""
