"""The ACLs of a host, so that those about one resource or one caller are found without a search through all.

An operation is a bit in one number for each caller: bit n allows the operation with code n, bit n + 16 denies
it. The bits of all ACLs that fit are combined with "or".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from odradek.plugin.authorizer import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclPermission,
    PatternType,
    ResourceType,
)
from odradek.security.acl import Acl, AclEntry, AclFilter, ResourcePattern

DENY_SHIFT: Final = 16
"""More than the largest code of an operation."""


class PatternAcls:
    """The ACLs of one resource pattern."""

    def __init__(self, pattern: ResourcePattern) -> None:
        self.pattern = pattern
        self.entries: dict[AclEntry, None] = {}
        """In the order of their creation."""
        self.by_principal: dict[str, dict[str, int]] = {}
        """Bits by principal and host."""

    def of(self, principal: str, host: str) -> int:
        """The bits of all entries that fit a caller."""
        bits = 0
        for name in (principal, WILDCARD_PRINCIPAL):
            hosts = self.by_principal.get(name)
            if hosts is not None:
                bits |= hosts.get(host, 0) | hosts.get(WILDCARD, 0)
        return bits

    def add(self, entry: AclEntry) -> None:
        """Add an entry that is not there."""
        self.entries[entry] = None
        hosts = self.by_principal.setdefault(entry.principal, {})
        hosts[entry.host] = hosts.get(entry.host, 0) | bit(entry)

    def remove(self, entry: AclEntry) -> None:
        """Remove an entry that is there."""
        del self.entries[entry]
        hosts = self.by_principal[entry.principal]
        hosts[entry.host] &= ~bit(entry)
        if not hosts[entry.host]:
            del hosts[entry.host]
        if not hosts:
            del self.by_principal[entry.principal]


class AclIndex:
    """All ACLs."""

    def __init__(self) -> None:
        self.count = 0
        self.patterns: dict[ResourcePattern, PatternAcls] = {}
        self.literal: dict[ResourceType, dict[str, PatternAcls]] = {kind: {} for kind in ResourceType}
        self.prefixed: dict[ResourceType, dict[str, PatternAcls]] = {kind: {} for kind in ResourceType}
        self.longest = dict.fromkeys(ResourceType, 0)
        """Characters of the longest prefix so far."""
        self.callers: dict[tuple[str, str], dict[ResourcePattern, None]] = {}
        """The patterns that have an entry of a principal and host."""

    def __contains__(self, acl: Acl) -> bool:
        acls = self.patterns.get(acl.pattern)
        return acls is not None and acl.entry in acls.entries

    def __len__(self) -> int:
        return self.count

    def add(self, acl: Acl) -> None:
        """Add an ACL; nothing happens if it is there."""
        pattern, entry = acl
        acls = self.patterns.get(pattern) or self._new_pattern(pattern)
        if entry not in acls.entries:
            acls.add(entry)
            self.callers.setdefault((entry.principal, entry.host), {})[pattern] = None
            self.count += 1

    def remove(self, acl: Acl) -> None:
        """Remove an ACL; nothing happens if it is not there."""
        pattern, entry = acl
        if acl not in self:
            return
        acls = self.patterns[pattern]
        acls.remove(entry)
        self.count -= 1
        if entry.host not in acls.by_principal.get(entry.principal, {}):
            caller = (entry.principal, entry.host)
            del self.callers[caller][pattern]
            if not self.callers[caller]:
                del self.callers[caller]
        if not acls.entries:
            self._forget_pattern(pattern)

    def about(self, resource_type: ResourceType, name: str) -> Iterator[PatternAcls]:
        """Yield the patterns that fit a resource: its own name, its prefixes from the longest on, ``*``."""
        literal = self.literal[resource_type]
        own = literal.get(name)
        if own is not None:
            yield own
        yield from self.beginning(resource_type, name)
        wildcard = literal.get(WILDCARD)
        if wildcard is not None and wildcard is not own:
            yield wildcard

    def beginning(self, resource_type: ResourceType, name: str) -> Iterator[PatternAcls]:
        """Yield the patterns that a name begins with, the longest first."""
        prefixed = self.prefixed[resource_type]
        for length in range(min(len(name), self.longest[resource_type]), -1, -1) if prefixed else ():
            acls = prefixed.get(name[:length])
            if acls is not None:
                yield acls

    def of_caller(self, principal: str, host: str) -> Iterator[PatternAcls]:
        """Yield the patterns with an entry that fits a caller; a pattern may be repeated."""
        names, hosts = {principal, WILDCARD_PRINCIPAL}, {host, WILDCARD}
        found = chain.from_iterable(
            self.callers.get((name, address), ()) for name in names for address in hosts
        )
        return map(self.patterns.__getitem__, found)

    def patterns_selected(self, wanted: AclFilter) -> list[ResourcePattern]:
        """The patterns that a filter may select: all, or the one that it names."""
        exact = wanted.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
        if not exact or wanted.name is None or wanted.resource_type is ResourceType.ANY:
            return list(self.patterns)
        pattern = ResourcePattern(wanted.resource_type, wanted.name, wanted.pattern_type)
        return [pattern] if pattern in self.patterns else []

    def _new_pattern(self, pattern: ResourcePattern) -> PatternAcls:
        acls = self.patterns[pattern] = PatternAcls(pattern)
        if pattern.pattern_type is PatternType.LITERAL:
            self.literal[pattern.resource_type][pattern.name] = acls
        else:
            self.prefixed[pattern.resource_type][pattern.name] = acls
            self.longest[pattern.resource_type] = max(self.longest[pattern.resource_type], len(pattern.name))
        return acls

    def _forget_pattern(self, pattern: ResourcePattern) -> None:
        del self.patterns[pattern]
        if pattern.pattern_type is PatternType.LITERAL:
            del self.literal[pattern.resource_type][pattern.name]
        else:
            del self.prefixed[pattern.resource_type][pattern.name]


def bit(entry: AclEntry) -> int:
    is_denial = entry.permission is AclPermission.DENY
    return 1 << (entry.operation + (DENY_SHIFT if is_denial else 0))
