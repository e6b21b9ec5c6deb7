"""The client quotas that apply to a client, by Kafka's order of precedence (KIP-55, KIP-546)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from odradek_console.cluster_rows import QuotaRow
from odradek_console.json_form import JsonRow

USER, CLIENT_ID, IP = "user", "client-id", "ip"
Entity = Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedQuota(JsonRow):
    """A limit of a client, and the entity that it is set for."""

    key: str
    value: float
    entity: tuple[tuple[str, str | None], ...]

    @property
    def entity_text(self) -> str:
        """The entity as ``user=billing, client-id=(default)``."""
        return ", ".join(f"{kind}={'(default)' if name is None else name}" for kind, name in self.entity)

    @property
    def shared_by(self) -> str:
        """The clients that use the limit up together (ClientQuotaManager.java)."""
        kinds = {kind for kind, _ in self.entity}
        if kinds == {USER}:
            return "all clients of the user"
        if kinds == {CLIENT_ID}:
            return "all clients of the client id"
        return "all connections of the address" if kinds == {IP} else "clients of this user and client id"


def entities(user: str, client_id: str) -> Iterator[Entity]:
    """The entities of a client, the one that wins first (ClientQuotaManager.java)."""
    for name in (user, None):
        yield {USER: name, CLIENT_ID: client_id}
        yield {USER: name, CLIENT_ID: None}
        yield {USER: name}
    yield {CLIENT_ID: client_id}
    yield {CLIENT_ID: None}


def applied_quotas(
    quotas: Iterable[QuotaRow], principal: str, client_id: str, address: str
) -> list[AppliedQuota]:
    """The limits of a client, by key. Each key has its own order.

    Args:
        quotas: The quotas of the cluster.
        principal: As ``User:billing``.
        client_id: The client id.
        address: The IP address, which has limits of its own.
    """
    limits = {frozenset(row.entity): dict(row.limits) for row in quotas}
    found: dict[str, AppliedQuota] = {}
    user = principal.partition(":")[2] or principal
    for entity in (*entities(user, client_id), {IP: address}, {IP: None}):
        for key, value in limits.get(frozenset(entity.items()), {}).items():
            if key not in found:
                found[key] = AppliedQuota(key=key, value=value, entity=tuple(entity.items()))
    return [found[key] for key in sorted(found)]
