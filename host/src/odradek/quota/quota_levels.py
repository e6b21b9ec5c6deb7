"""Kafka's default rules to find the quota of a client; after DefaultQuotaCallback of ClientQuotaManager.

Eight entities may apply to a client, the most specific first: user and client id, user and default client id,
user, default user and client id, default user and default client id, default user, client id, default client
id. The entity that applies determines the metric tags, and clients with the same tags share one budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntFlag

from odradek.plugin.client_quota import Absent
from odradek.quota.quota_entity import ABSENT, DEFAULT, ClientQuotaEntity, sanitize

Part = str | None | Absent
Tags = tuple[str, str]
"""Sanitized user and client id; "" for the one that does not matter."""


class QuotaTypes(IntFlag):
    """The levels on which an entity has a quota (QuotaTypes.scala)."""

    NO_QUOTAS = 0
    CLIENT_ID = 1
    USER = 2
    USER_CLIENT_ID = 4


def level_of(entity: ClientQuotaEntity) -> QuotaTypes:
    """The level that an entity belongs to."""
    if entity.user is ABSENT:
        return QuotaTypes.CLIENT_ID
    return QuotaTypes.USER if entity.client_id is ABSENT else QuotaTypes.USER_CLIENT_ID


@dataclass(slots=True, eq=False)
class QuotaLevels:
    """The configured entities of one quota type, and their number on each level."""

    limits: dict[tuple[Part, Part], float] = field(default_factory=dict)
    entities: dict[QuotaTypes, int] = field(default_factory=dict)
    enabled: QuotaTypes = QuotaTypes.NO_QUOTAS

    def update(self, entity: ClientQuotaEntity, value: float | None) -> None:
        """Set or remove the quota of an entity. A level is enabled while one of its entities has a quota."""
        key, level = self.key(entity), level_of(entity)
        before = len(self.limits)
        if value is None:
            self.limits.pop(key, None)
        else:
            self.limits[key] = value
        self.entities[level] = self.entities.get(level, 0) + len(self.limits) - before
        self.enabled = QuotaTypes.NO_QUOTAS
        for each, number in self.entities.items():
            if number:
                self.enabled |= each

    @staticmethod
    def key(entity: ClientQuotaEntity) -> tuple[Part, Part]:
        """The key of an entity's limit. Its user is sanitized, as in tags."""
        user = sanitize(entity.user) if isinstance(entity.user, str) else entity.user
        return user, entity.client_id

    def tags(self, user: str, client_id: str) -> Tags:
        """The tags of a client; ``user`` is sanitized."""
        enabled = self.enabled
        if enabled <= QuotaTypes.CLIENT_ID:
            return "", client_id
        if enabled == QuotaTypes.USER:
            return user, ""
        if enabled == QuotaTypes.USER_CLIENT_ID:
            return user, client_id
        return self.tags_by_precedence(user, client_id)

    def tags_by_precedence(self, user: str, client_id: str) -> Tags:
        """The tags of a client if several levels have quotas: those of the most specific entity."""
        limits = self.limits
        for name in (user, DEFAULT):
            if (name, client_id) in limits or (name, DEFAULT) in limits:
                return user, client_id
            if (name, ABSENT) in limits:
                return user, ""
        return "", client_id

    def limit(self, tags: Tags) -> float | None:
        """The quota of the clients with these tags; None if there is none."""
        user, client_id = tags
        if user and client_id:
            return self.first((user, client_id), (user, DEFAULT), (DEFAULT, client_id), (DEFAULT, DEFAULT))
        if user:
            return self.first((user, ABSENT), (DEFAULT, ABSENT))
        if client_id:
            return self.first((ABSENT, client_id), (ABSENT, DEFAULT))
        return None

    def first(self, *keys: tuple[Part, Part]) -> float | None:
        """The limit of the first key that has one."""
        for key in keys:
            limit = self.limits.get(key)
            if limit is not None:
                return limit
        return None
