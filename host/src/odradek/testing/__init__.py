"""What a test of a plugin or a client needs from the host."""
