"""What an operator sets, in one SQLite file."""
