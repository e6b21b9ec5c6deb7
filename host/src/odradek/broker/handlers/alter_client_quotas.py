"""AlterClientQuotas v0-v1 (KIP-546, KIP-612).

Behavior:
    * Entities are users, client ids, both together, or addresses, each by name or as the default. The quotas
      are stored and apply before the answer. Earlier measurements still count.
    * Each entity is changed completely or not at all; a refused entity does not affect the others. The answer
      has each entity once.
    * The same entity twice is INVALID_REQUEST; the first one is applied.
    * Removing a quota that is not set, or a key that does not exist, succeeds.
    * Host names are looked up without blocking other clients.
Versions:
    * v1: flexible.
Differs from Kafka:
    * A request for more than 25 entities is stored in several transactions.
    * NaN is refused like a number that is not positive; Kafka stores it.
    * A new entity beyond ``client.quotas.max`` or ``name.max.length`` is POLICY_VIOLATION.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from odradek.broker.broker import Broker
from odradek.broker.client_quotas import Alteration, place
from odradek.broker.dispatch.response_elements import gathered
from odradek.broker.dispatch.routes import answers
from odradek.broker.host_lookups import HostLookups
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred, after
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    RequestEntryData,
    ResponseEntryData,
)


def outcome(entity: Mapping[str, str | None], code: ErrorCode, message: str | None) -> ResponseEntryData:
    return ResponseEntryData(
        error_code=code,
        error_message=message,
        entity=[EntityData(entity_type=kind, entity_name=entity[kind]) for kind in sorted(entity, key=place)],
    )


def refused(
    request: AlterClientQuotasRequest, code: ErrorCode, message: str | None
) -> AlterClientQuotasResponse:
    """The same refusal for every entity."""
    return AlterClientQuotasResponse(
        entries=[outcome(names(entry.entity), code, message) for entry in request.entries]
    )


def names(entity: list[EntityData]) -> dict[str, str | None]:
    """Names by type; the last one of a repeated type."""
    return {part.entity_type: part.entity_name for part in entity}


def alteration(entry: RequestEntryData) -> Alteration:
    """One entry. The value of a removal is ignored."""
    return Alteration(names(entry.entity), [(op.key, None if op.remove else op.value) for op in entry.ops])


@answers(AlterClientQuotasRequest, refusal=refused)
def alter_client_quotas(
    request: AlterClientQuotasRequest, context: RequestContext, broker: Broker
) -> AlterClientQuotasResponse | Deferred[AlterClientQuotasResponse]:
    broker.authorization.require_on_cluster(context, AclOperation.ALTER_CONFIGS)
    quotas = broker.client_quotas
    alterations: list[Alteration] = broker.steps.large_list()
    unknown: set[str] = set()

    def read() -> Generator[None, None, None]:
        for entry in request.entries:
            alterations.append(alteration(entry))
            unknown.update(quotas.unknown_hosts(alterations[-1:]))
            yield

    def altered() -> Generator[ResponseEntryData | None, None, AlterClientQuotasResponse]:
        outcomes = yield from quotas.alter_in_steps(alterations, request.validate_only)
        for entity, error in outcomes.items():
            code, message = (ErrorCode.NONE, None) if error is None else (error.code, error.message)
            yield outcome(dict(entity), code, message)
        return AlterClientQuotasResponse()

    def answered() -> AlterClientQuotasResponse | Deferred[AlterClientQuotasResponse]:
        response: AlterClientQuotasResponse | Deferred[AlterClientQuotasResponse] = gathered(
            altered(), AlterClientQuotasResponse, "entries", context.api_version, broker, droppable=False
        )
        return response

    def alter(_: None) -> AlterClientQuotasResponse | Deferred[AlterClientQuotasResponse]:
        if not unknown:
            return answered()
        deferred = Deferred[None]()
        lookups = HostLookups(quotas.hosts, sorted(unknown), lambda: deferred.complete(None))
        deferred.abandon = lookups.stop
        lookups.run()
        return deferred.then(lambda _: answered())

    return after(broker.steps.answer(read(), droppable=True), alter)
