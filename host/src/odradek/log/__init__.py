"""Append-only partitions: segments, indexes, recovery, producer state.

There is no clock, loop or socket here. Files are read and written through ``os``; ``now_ms`` is passed in.
"""
