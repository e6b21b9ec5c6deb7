"""The command line: one subcommand per file, found by name in `main`."""
