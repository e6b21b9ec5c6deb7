"""Fetch: sessions, reading, long polls."""
