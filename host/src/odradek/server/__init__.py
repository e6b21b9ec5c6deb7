"""The machine room: sockets, the event loop, threads, wall time. What runs here is decided below."""
