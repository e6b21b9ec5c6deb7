"""DescribeConfigs v1-v4 (KIP-133, KIP-226).

Behavior:
    * All keys of a resource with the value in force and its source; unset keys with their defaults.
    * The answer has only the keys that the request names, without unknown ones; an empty list names all.
    * A BROKER key that Kafka has and this host does not is described, with Kafka's default, if the request
      names it or if it is set. Its documentation says that it has no effect. The value of an unknown key is
      hidden, as in Kafka.
    * A CLIENT_METRICS resource or group without properties has the defaults; its name is not an error.
    * A resource that is named twice is described twice.
    * BROKER without a name shows the keys that were set at run time on all brokers.
    * A topic that does not exist is UNKNOWN_TOPIC_OR_PARTITION. One resource type that cannot be described
      makes the request INVALID_REQUEST, for every resource.
Versions:
    * v1: synonyms. v3: type and documentation of keys. v4: flexible.
Differs from Kafka:
    * Keys that this host does not have, such as those of tiered storage, are shown only if they are named.
    * BROKER_LOGGER is refused with a message of this host.
    * The documentation of keys is this host's own: Kafka's has paragraphs of HTML.
    * A request whose response would exceed ``response.max.bytes`` is POLICY_VIOLATION, once per resource.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Iterator
from functools import partial

from odradek.broker.broker import Broker
from odradek.broker.config_entry import ConfigEntry
from odradek.broker.configs.config_resources import RESOURCES, resource_of
from odradek.broker.configs.config_rights import ConfigRights
from odradek.broker.dispatch.response_elements import Composed, composed
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.error_text import MALFORMED_REQUEST
from odradek.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

DESCRIBED_TYPES = frozenset({*RESOURCES, ResourceType.BROKER_LOGGER})
CHECKED_TOGETHER = 500
REMEMBERED = 100
"""Results that are remembered for resources that a request names several times."""


def refused(request: DescribeConfigsRequest, code: ErrorCode, message: str | None) -> DescribeConfigsResponse:
    """Refuse every resource, once: the request may name one many thousand times."""
    resources = dict(named(request.resources)).values()
    return DescribeConfigsResponse(results=[refusal(resource, code, message) for resource in resources])


def named(resources: Iterable[DescribeConfigsResource]) -> Iterator[tuple[Hashable, DescribeConfigsResource]]:
    """Resources by type and name."""
    return (((each.resource_type, each.resource_name), each) for each in resources)


def refusal(resource: DescribeConfigsResource, code: ErrorCode, message: str | None) -> DescribeConfigsResult:
    """The answer for a resource that is not described."""
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


@answers(DescribeConfigsRequest, refusal=refused, each="results", droppable=True)
def describe_configs(
    request: DescribeConfigsRequest, context: RequestContext, broker: Broker
) -> Generator[DescribeConfigsResult | Composed | None, None, DescribeConfigsResponse]:
    """Describe each resource, in the order of the request; refused ones come last."""
    resources = request.resources
    distinct: dict[Hashable, DescribeConfigsResource] = {}
    for start in range(0, len(resources), CHECKED_TOGETHER):
        some = resources[start : start + CHECKED_TOGETHER]
        if any(resource.resource_type not in DESCRIBED_TYPES for resource in some):
            raise ApiError(ErrorCode.INVALID_REQUEST, MALFORMED_REQUEST)
        distinct.update(named(some))
        yield None
    request.resources = list(distinct.values())  # a refusal names each of them once
    rights = ConfigRights(broker.authorization, context, AclOperation.DESCRIBE_CONFIGS)
    unseen: list[DescribeConfigsResult] = []
    seen: dict[Hashable, DescribeConfigsResult | Composed] = {}
    for resource in resources:
        refused = rights.refusal(resource.resource_type, resource.resource_name)
        if refused is not None:
            unseen.append(refusal(resource, refused.code, refused.message))
            yield None
            continue
        keys = resource.configuration_keys
        asked = (resource.resource_type, resource.resource_name, None if keys is None else tuple(keys))
        result = seen.get(asked)
        if result is None:
            if len(seen) == REMEMBERED:
                seen.clear()
            result = seen[asked] = yield from described(resource, request, broker)
        yield result
    yield from unseen
    return DescribeConfigsResponse()


def described(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, broker: Broker
) -> Generator[None, None, DescribeConfigsResult | Composed]:
    """Describe one resource, a key at a time."""
    try:
        entries = yield from entries_of(resource, broker)
    except ApiError as error:
        return refusal(resource, error.code, error.message)
    keys = resource.configuration_keys
    result = DescribeConfigsResult(
        error_message="",  # Kafka sends an empty text here, not null
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
    parts = [partial(shown, entry, request) for entry in entries if not keys or entry.key.name in keys]
    return composed(result, "configs", parts)


def entries_of(resource: DescribeConfigsResource, broker: Broker) -> Generator[None, None, list[ConfigEntry]]:
    """All keys of one resource, sorted by name."""
    kind = resource_of(resource.resource_type, MALFORMED_REQUEST)
    asked = resource.configuration_keys or ()
    entries = []
    for entry in kind.entries(resource.resource_name, broker, asked):
        entries.append(entry)
        yield
    return sorted(entries, key=lambda entry: entry.key.name)


def shown(entry: ConfigEntry, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    """One key, with the details that the request asks for."""
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.key.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        synonyms=[
            DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in synonyms
        ],
        is_sensitive=entry.key.sensitive,
        config_type=entry.key.kind.type,
        documentation=(entry.key.documentation or None) if request.include_documentation else None,
    )
