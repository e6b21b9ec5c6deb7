"""The responses that name addresses, and their rewriters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.complete import seen_fetch, seen_produce, unseen
from odradek.gateway.rewriting.describe_cluster import describe_cluster
from odradek.gateway.rewriting.find_coordinator import find_coordinator
from odradek.gateway.rewriting.metadata import MetadataRewriter
from odradek.gateway.rewriting.rewriter import HoldLimits, MalformedResponse, Rewriter, Seen
from odradek.gateway.rewriting.tails import listed_endpoints, tagged_endpoints
from odradek.gateway.rewriting.walked import WalkedRewriter
from odradek.gateway.rewriting.walks import (
    acknowledged_partition,
    fetch_walk,
    fetched_partition,
    produce_walk,
    share_walk,
)
from odradek.gateway.rewriting.whole import WholeRewriter
from odradek.wire.messages.describe_cluster import DescribeClusterResponse
from odradek.wire.messages.fetch import FetchResponse
from odradek.wire.messages.find_coordinator import FindCoordinatorResponse
from odradek.wire.messages.metadata import MetadataResponse
from odradek.wire.messages.produce import ProduceResponse

SHARE_FETCH = 78
SHARE_ACKNOWLEDGE = 79

Make = Callable[[int, int, Addresses, HoldLimits], Rewriter]
"""Makes a rewriter from version, size, addresses and limits."""
See = Callable[[int, bytes, int, int], Seen | None]
"""Takes version, data, and the positions of a response's correlation id and of its end. Returns the fields
that were read if the response passes as it is; None if it needs its rewriter."""


@dataclass(frozen=True, slots=True)
class AddressedApi:
    """An API whose responses name addresses."""

    last: int
    """The last version whose layout is known."""
    make: Make
    first: int = 0
    """The first version with an address."""
    seen: See = unseen
    """Looks at a response that has arrived whole: most pass without a rewriter."""


class UnknownLayout:
    """Refuses one response: its version is newer than the layouts that are known."""

    error_code: int | None = None
    throttle_ms: int | None = None
    held_bytes = 0

    def __init__(self, api_key: int, version: int) -> None:
        self.api_key = api_key
        self.version = version

    def feed(self, chunk: memoryview) -> list[bytes | memoryview]:
        """Refuse the response.

        Raises:
            MalformedResponse: Always.
        """
        raise MalformedResponse(f"the layout of API {self.api_key} version {self.version} is not known")


def metadata(version: int, size: int, addresses: Addresses, limits: HoldLimits) -> Rewriter:
    return MetadataRewriter(size, version, addresses, limits.response_bytes)


def coordinator(version: int, size: int, addresses: Addresses, limits: HoldLimits) -> Rewriter:
    return WholeRewriter(size, find_coordinator(version), addresses, limits.response_bytes)


def cluster(version: int, size: int, addresses: Addresses, limits: HoldLimits) -> Rewriter:
    return WholeRewriter(size, describe_cluster(version), addresses, limits.response_bytes)


def is_held(size: int, limits: HoldLimits) -> bool:
    """Whether a Fetch or ShareFetch response is held until its end."""
    return size <= min(limits.exact_fetch_bytes, limits.response_bytes)


def produce(version: int, size: int, addresses: Addresses, limits: HoldLimits) -> Rewriter:
    walk = produce_walk(topic_id=version >= 13)
    return WalkedRewriter(size, walk, tagged_endpoints, addresses, limits.response_bytes, exact=True)


def fetch(version: int, size: int, addresses: Addresses, limits: HoldLimits) -> Rewriter:
    exact = is_held(size, limits)
    return WalkedRewriter(size, fetch_walk, tagged_endpoints, addresses, limits.response_bytes, exact)


def share_fetch(version: int, size: int, addresses: Addresses, limits: HoldLimits) -> Rewriter:
    walk, exact = share_walk(version >= 1, fetched_partition), is_held(size, limits)
    return WalkedRewriter(size, walk, listed_endpoints, addresses, limits.response_bytes, exact)


def share_acknowledge(version: int, size: int, addresses: Addresses, limits: HoldLimits) -> Rewriter:
    walk = share_walk(version >= 2, acknowledged_partition)
    return WalkedRewriter(size, walk, listed_endpoints, addresses, limits.response_bytes, exact=True)


ADDRESSED: dict[int, AddressedApi] = {
    ProduceResponse.API_KEY: AddressedApi(13, produce, first=10, seen=seen_produce),
    FetchResponse.API_KEY: AddressedApi(18, fetch, first=16, seen=seen_fetch),
    MetadataResponse.API_KEY: AddressedApi(13, metadata),
    FindCoordinatorResponse.API_KEY: AddressedApi(6, coordinator),
    DescribeClusterResponse.API_KEY: AddressedApi(2, cluster),
    SHARE_FETCH: AddressedApi(2, share_fetch),
    SHARE_ACKNOWLEDGE: AddressedApi(2, share_acknowledge),
}


def rewriter_for(
    api_key: int, version: int, size: int, addresses: Addresses, limits: HoldLimits
) -> Rewriter | None:
    """Return the rewriter of one response; None for a response that names no address and passes.

    Args:
        size: The int32 length of the response.
    """
    api = ADDRESSED.get(api_key)
    if api is None or version < api.first:
        return None
    if version > api.last:
        return UnknownLayout(api_key, version)
    return api.make(version, size, addresses, limits)
