"""Plugins that run in the host, and the processes that run for it."""
