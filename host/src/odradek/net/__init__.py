"""Listeners and the connections they accept: sockets, TLS, turns, and the memory that they may hold."""
