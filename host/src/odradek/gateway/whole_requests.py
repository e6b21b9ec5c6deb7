"""Requests that are read whole: those that open a connection, and those about CLIENT_METRICS resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from odradek.gateway.request_heads import after_tags, client_id_end
from odradek.wire.codec import decode
from odradek.wire.config_resource import ResourceType
from odradek.wire.errors import WireError
from odradek.wire.header import flexible_request_header, flexible_response_header, read_response_header
from odradek.wire.messages.describe_configs import DescribeConfigsRequest
from odradek.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from odradek.wire.messages.list_config_resources import ListConfigResourcesRequest


def request_body(message: type[Any], version: int, frame: bytes) -> Any | None:
    """Decode a request; None if it cannot be decoded, which is for the broker to refuse.

    Args:
        message: The class of the request.
        version: Its version.
        frame: The request with its length.
    """
    if version not in message.VERSIONS:
        return None
    at = client_id_end(frame, 0)
    try:
        if flexible_request_header(message, version):
            at = after_tags(frame, at)
        return decode(message, version, frame[at:])
    except WireError:
        return None


RESOURCE_REQUESTS: Final[Mapping[int, type[Any]]] = {
    each.API_KEY: each
    for each in (DescribeConfigsRequest, IncrementalAlterConfigsRequest, ListConfigResourcesRequest)
}
"""Requests that may be about CLIENT_METRICS resources, by API key."""


def only_client_metrics(api_key: int, version: int, frame: bytes) -> bool:
    """Whether one of `RESOURCE_REQUESTS`, with its length, is about CLIENT_METRICS resources only."""
    request = request_body(RESOURCE_REQUESTS[api_key], version, frame)
    if request is None:
        return False
    if isinstance(request, ListConfigResourcesRequest):
        return version == 0 or request.resource_types == [ResourceType.CLIENT_METRICS]
    types = {each.resource_type for each in request.resources}
    return types == {ResourceType.CLIENT_METRICS}


def response_body(message: type[Any], version: int, frame: bytes) -> Any | None:
    """Decode a response; None if it cannot be decoded.

    Args:
        message: The class of the response.
        version: The version of the request.
        frame: The response without its length.
    """
    if version not in message.VERSIONS:
        return None
    try:
        _, at = read_response_header(frame, 0, flexible_response_header(message, version))
        return decode(message, version, frame[at:])
    except WireError:
        return None
