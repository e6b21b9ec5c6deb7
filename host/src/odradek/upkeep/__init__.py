"""The files of a host: storage, recovery, flushes, and the work that keeps logs in shape."""
