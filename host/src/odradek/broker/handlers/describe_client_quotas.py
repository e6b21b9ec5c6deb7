"""DescribeClientQuotas v0-v1 (KIP-546, KIP-612).

Behavior:
    * The entities that match all components of the filter, each with all its quotas; no components match
      everything, or nothing if the filter is strict.
    * "Any" of a type matches the default too.
    * An invalid filter is INVALID_REQUEST, an unknown type UNSUPPORTED_VERSION.
Versions:
    * v1: flexible.
Differs from Kafka:
    * Entities, and the quotas of one, come in the order in which they were set; Kafka's order is that of a
      hash table, which depends on their number.
"""

from __future__ import annotations

from collections.abc import Generator
from enum import IntEnum

from odradek.broker.broker import Broker
from odradek.broker.client_quotas import CLIENT_ID, ENTITY_TYPES, IP, USER, QuotaFilter
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)


class MatchType(IntEnum):
    """How a component names an entity; after DescribeClientQuotasRequest.java."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


@answers(DescribeClientQuotasRequest, entries=None, each="entries", droppable=True)
def describe_client_quotas(
    request: DescribeClientQuotasRequest, context: RequestContext, broker: Broker
) -> Generator[EntryData | None, None, DescribeClientQuotasResponse]:
    if not broker.authorization.allows_on_cluster(context, AclOperation.DESCRIBE_CONFIGS):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    wanted = read_filter(request)
    for found in broker.client_quotas.find(wanted):
        if found is None:
            yield None
            continue
        entity, values = found
        yield EntryData(
            entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
            values=[ValueData(key=key, value=value) for key, value in values.items()],
        )
    return DescribeClientQuotasResponse()


def read_filter(request: DescribeClientQuotasRequest) -> QuotaFilter:
    """The filter of the request, checked in Kafka's order.

    Raises:
        ApiError: INVALID_REQUEST or UNSUPPORTED_VERSION.
    """
    names: dict[str, str | None] = {}
    types: set[str] = set()
    for component in request.components:
        kind = component.entity_type
        if not kind:
            raise ApiError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in names or kind in types:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Entity type {kind} cannot appear more than once in the filter."
            )
        if kind not in ENTITY_TYPES:
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        check_match(component)
        if component.match_type == MatchType.SPECIFIED:
            types.add(kind)
        else:
            names[kind] = component.match
    named = names.keys() | types
    if IP in named and named & {USER, CLIENT_ID}:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used with user "
            "or clientId filter component.",
        )
    return QuotaFilter(names, frozenset(types), request.strict)


def check_match(component: ComponentData) -> None:
    """Check that a component has a name exactly if its match type needs one.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    try:
        how = MatchType(component.match_type)
    except ValueError:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"Unknown match type {component.match_type}") from None
    if how is MatchType.EXACT and component.match is None:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, "Request specified MATCH_TYPE_EXACT, but set match string to null."
        )
    if how is not MatchType.EXACT and component.match is not None:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Request specified MATCH_TYPE_{how.name}, but also specified a match string.",
        )
