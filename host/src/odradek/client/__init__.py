"""Talking to any broker, Odradek's or Kafka's: blocking, for the command line and for tests."""
