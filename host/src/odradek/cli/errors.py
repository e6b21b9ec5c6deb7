"""The one thing a subcommand raises on its own account."""


class CommandFailed(Exception):
    """The operation failed. The message is the line that the user sees, exit status 1."""
