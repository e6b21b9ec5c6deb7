"""Metrics of clients that do not push, from what passes between them and the brokers."""
