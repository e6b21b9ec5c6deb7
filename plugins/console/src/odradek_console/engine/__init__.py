"""Clients as the records of the telemetry topic describe them. No files, no sockets, no clock."""
