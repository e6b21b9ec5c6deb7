"""The topics with errors in responses, which are decoded as a whole if there are any."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from odradek.gateway.whole_requests import response_body
from odradek.wire.errors import WireError
from odradek.wire.header import flexible_response_header
from odradek.wire.layout import layout
from odradek.wire.messages.metadata import MetadataResponse
from odradek.wire.messages.produce import ProduceResponse
from odradek.wire.types import NIL_UUID
from odradek.wire.uuid_text import uuid_text
from odradek.wire.walk_source import Walk, Wanted, compile_walk

CORRELATION_ID_BYTES: Final = 4
KEPT_BYTES: Final = 2_048
"""A Metadata response up to this size is kept for the names of its topics."""


@cache
def errors_walk(version: int) -> Walk:
    """A walk over a Metadata response that counts its errors.

    Raises:
        WireError: There is no such version.
    """
    wanted = Wanted("error_code", header=flexible_response_header(MetadataResponse, version))
    return compile_walk(layout(MetadataResponse, version), wanted, f"Metadata v{version} errors")


def has_errors(version: int, head: bytes, at: int, size: int) -> bool:
    """Whether a Metadata response has an error, as far as it is there."""
    try:
        return bool(errors_walk(version)(head, at + CORRELATION_ID_BYTES, at + size)[1])
    except WireError:
        return False


def topics_of(version: int, frame: bytes) -> Iterator[tuple[str, int]]:
    """The topics with an error in a Metadata response, and their errors."""
    answer = response_body(MetadataResponse, version, frame)
    for topic in () if answer is None else answer.topics:
        if topic.error_code:
            yield topic.name or uuid_text(topic.topic_id), topic.error_code


def partitions_of(version: int, frame: bytes, names: dict[bytes, str]) -> Iterator[tuple[str, int]]:
    """The topic and the error of each partition with an error in a Produce response.

    Args:
        version: Of the response.
        frame: The response without its length.
        names: The names of topics by their ids, where they are known.
    """
    answer = response_body(ProduceResponse, version, frame)
    for topic in () if answer is None else answer.responses:
        name = topic.name or names.get(topic.topic_id) or uuid_text(topic.topic_id)
        for partition in topic.partition_responses:
            if partition.error_code:
                yield name, partition.error_code


def names_of(version: int, frame: bytes) -> dict[bytes, str]:
    """The names of the topics in a Metadata response, by their ids."""
    answer = response_body(MetadataResponse, version, frame) if frame else None
    topics = () if answer is None else answer.topics
    return {each.topic_id: each.name for each in topics if each.name and each.topic_id != NIL_UUID}
