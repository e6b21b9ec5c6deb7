"""The machine room: sockets, the event loop, threads, wall time. What it runs is decided on the floors below.
"""
