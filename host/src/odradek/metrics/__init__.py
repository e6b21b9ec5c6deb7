"""Kafka's measuring primitives, with Kafka's window maths. Time comes in as ``now_ms``."""
