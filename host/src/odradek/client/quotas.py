"""DescribeClientQuotas and AlterClientQuotas (KIP-546)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, Literal

from odradek.client.cluster import Cluster
from odradek.client.errors import RequestFailed, check, failure
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)


class AnyName(Enum):
    """Matches every entity of the type, with any name."""

    ANY = "any"


ANY: Final = AnyName.ANY
Match = str | Literal[AnyName.ANY] | None
"""A name, `ANY`, or None for the default."""
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
"""Match types of a component (DescribeClientQuotasRequest.java)."""


def describe_client_quotas(
    cluster: Cluster, components: Mapping[str, Match], strict: bool
) -> dict[ClientQuotaEntity, dict[str, float]]:
    """The quotas of the matching entities; see `AdminClient.describe_client_quotas`."""
    request = DescribeClientQuotasRequest(
        components=[component(kind, match) for kind, match in components.items()], strict=strict
    )
    response: DescribeClientQuotasResponse = cluster.any().send(request)
    check(response.error_code, response.error_message, "DescribeClientQuotas")
    return {
        ClientQuotaEntity.of({part.entity_type: part.entity_name for part in row.entity}): {
            value.key: value.value for value in row.values
        }
        for row in response.entries or ()
    }


def component(kind: str, match: Match) -> ComponentData:
    """One component of a filter as a message."""
    if match is ANY:
        return ComponentData(entity_type=kind, match_type=SPECIFIED, match=None)
    return ComponentData(entity_type=kind, match_type=DEFAULT if match is None else EXACT, match=match)


def alter_client_quotas(
    cluster: Cluster,
    alterations: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
    entities: Iterable[ClientQuotaEntity],
    validate_only: bool,
) -> dict[ClientQuotaEntity, RequestFailed | None]:
    """Alter some entities and return the result of each; see `AdminClient.alter_client_quotas`."""
    request = AlterClientQuotasRequest(
        entries=[entry(entity, alterations[entity]) for entity in entities], validate_only=validate_only
    )
    response: AlterClientQuotasResponse = cluster.any().send(request)
    outcomes = {}
    for row in response.entries:
        names = {part.entity_type: part.entity_name for part in row.entity}
        outcomes[ClientQuotaEntity.of(names)] = failure(row.error_code, row.error_message)
    return outcomes


def entry(entity: ClientQuotaEntity, values: Mapping[str, float | None]) -> RequestEntryData:
    """The changes of one entity as a message."""
    return RequestEntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.names().items()],
        ops=[OpData(key=key, value=value or 0, remove=value is None) for key, value in values.items()],
    )
