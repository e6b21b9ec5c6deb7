"""The exception that a subcommand raises when its operation fails."""


class CommandFailed(Exception):
    """The operation failed. The message is printed on stderr, and the exit status is 1."""
