"""A blocking client for any broker, Odradek's or Kafka's, used by the command line and by tests."""
