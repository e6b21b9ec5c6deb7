"""What is known of clients, from the records of the telemetry topic. No files, no sockets, no clock."""
