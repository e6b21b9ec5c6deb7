"""The process that a program runs in: its loop, threads, worker processes, signals, memory and logs."""
