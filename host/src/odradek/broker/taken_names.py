"""The names that no new topic may have."""

from __future__ import annotations


class TakenNames:
    """Names of topics. Two that differ only in ``.`` and ``_`` collide: names of metrics would clash."""

    def __init__(self) -> None:
        self.alike: dict[str, list[str]] = {}
        """The names, oldest first, by the name that has ``_`` for each ``.``."""
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def __contains__(self, name: str) -> bool:
        return name in self.alike.get(folded(name), ())

    def add(self, name: str) -> None:
        """Take a name."""
        self.alike.setdefault(folded(name), []).append(name)
        self.count += 1

    def discard(self, name: str) -> None:
        """Free a name."""
        key = folded(name)
        names = self.alike.get(key, [])
        if name in names:
            names.remove(name)
            self.count -= 1
        if not names:
            self.alike.pop(key, None)

    def rival(self, name: str) -> str | None:
        """The oldest name that this one collides with."""
        return next(iter(self.alike.get(folded(name), ())), None)


def folded(name: str) -> str:
    return name.replace(".", "_")
