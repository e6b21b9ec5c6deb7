"""odradek demo: real clients that push their metrics to a host on this machine."""
