"""Quotas as Kafka computes them. Nothing here waits or touches a socket: callers mute throttled channels."""
