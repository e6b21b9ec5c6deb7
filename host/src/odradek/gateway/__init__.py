"""The gateway: what becomes of the bytes that pass between a client and a broker, without I/O."""
