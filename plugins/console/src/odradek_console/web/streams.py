"""How many event streams there are, in all and of each user."""

from __future__ import annotations

from odradek.endpoints import Shares


class Streams:
    """Counts the streams. It belongs to the loop of the server.

    Args:
        most: The number of streams.
        most_per_user: The number of streams of one user.
    """

    def __init__(self, most: int, most_per_user: int) -> None:
        self.most = most
        self.shares = Shares(most_per_user)
        self.refusals = 0

    @property
    def count(self) -> int:
        """The streams of now."""
        return sum(self.shares.held.values())

    def open(self, user: str) -> str | None:
        """Begin a stream of a user, who closes it once; return why there is no room for it, or None."""
        if self.count >= self.most:
            problem = f"{self.count} pages of this console are live already"
        elif self.shares.take(user):
            return None
        else:
            problem = f"{self.shares.most} pages of {user} are live already: close one"
        self.refusals += 1
        return f"{problem}; reload this page to renew it"

    def close(self, user: str) -> None:
        """A stream of a user has ended."""
        self.shares.give_back(user)
