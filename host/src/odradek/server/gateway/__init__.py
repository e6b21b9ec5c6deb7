"""The sockets, threads and files of a gateway."""
