"""The prefixes of a name among many stored prefixes, found by one binary search."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator


class PrefixIndex:
    """A set of prefixes.

    In sorted order, everything between a prefix and a name that begins with it begins with it too. So the
    last prefix that does not sort after the name either is a prefix of the name, or has an ancestor that is:
    each prefix knows its `parent`, the longest other prefix that it begins with.
    """

    def __init__(self) -> None:
        self.sorted: list[str] = []
        self.parent: dict[str, str | None] = {}

    def __len__(self) -> int:
        return len(self.sorted)

    def of(self, name: str) -> Iterator[str]:
        """Yield the stored prefixes of a name, the longest first; a name is a prefix of itself."""
        found = self._at_most(name)
        while found is not None:
            if name.startswith(found):
                yield found
            found = self.parent[found]

    def add(self, prefix: str) -> None:
        """Add a prefix that is not there."""
        parent = next(self.of(prefix), None)
        for below in self._beginning_with(prefix):
            if self.parent[below] == parent:
                self.parent[below] = prefix
        insort(self.sorted, prefix)
        self.parent[prefix] = parent

    def remove(self, prefix: str) -> None:
        """Remove a prefix that is there."""
        del self.sorted[bisect_left(self.sorted, prefix)]
        parent = self.parent.pop(prefix)
        for below in self._beginning_with(prefix):
            if self.parent[below] == prefix:
                self.parent[below] = parent

    def _at_most(self, name: str) -> str | None:
        """The last prefix that does not sort after a name."""
        place = bisect_right(self.sorted, name)
        return self.sorted[place - 1] if place else None

    def _beginning_with(self, prefix: str) -> Iterator[str]:
        """Yield the stored prefixes that begin with this one."""
        for place in range(bisect_left(self.sorted, prefix), len(self.sorted)):
            if not self.sorted[place].startswith(prefix):
                return
            yield self.sorted[place]
