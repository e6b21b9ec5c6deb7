"""Odradek: a Kafka-protocol host for client telemetry (KIP-714)."""

__version__ = "0.1.0"
