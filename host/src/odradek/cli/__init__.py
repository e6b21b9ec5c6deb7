"""The command line: one file per subcommand, listed in `main`."""
