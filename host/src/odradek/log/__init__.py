"""Append-only partitions: segments, indexes, recovery, producer state.

Floor 4: no clock, no loop, no socket. Files are written and read through ``os``; ``now_ms`` is passed in.
"""
