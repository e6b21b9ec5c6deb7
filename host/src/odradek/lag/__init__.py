"""Lag of groups and clients, in records and in seconds: what it is, how it moves, and how it is reported.

There is no clock, loop or socket here. Offsets and times come from the host or from a poller of a cluster.
"""
