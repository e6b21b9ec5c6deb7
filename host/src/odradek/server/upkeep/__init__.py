"""Timers, storage, and the work that keeps logs in shape."""
