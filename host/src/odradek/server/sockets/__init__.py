"""Listeners and the connections they accept."""
