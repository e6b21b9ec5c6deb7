"""The responses that name addresses, and their rewriters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.addressed_layout import AddressedLayout, See, unseen
from odradek.gateway.rewriting.held import HeldRewriter
from odradek.gateway.rewriting.rewriter import HoldLimits, MalformedResponse, Rewriter
from odradek.gateway.rewriting.streamed import StreamedRewriter
from odradek.wire.messages.describe_cluster import DescribeClusterResponse
from odradek.wire.messages.fetch import FetchResponse
from odradek.wire.messages.find_coordinator import FindCoordinatorResponse
from odradek.wire.messages.metadata import MetadataResponse
from odradek.wire.messages.produce import ProduceResponse
from odradek.wire.messages.share_acknowledge import ShareAcknowledgeResponse
from odradek.wire.messages.share_fetch import ShareFetchResponse


@dataclass(frozen=True, slots=True)
class AddressedApi:
    """An API whose responses name addresses. The declared versions are those that can pass."""

    response: type[Any]
    nodes: str = "node_endpoints"
    """The array with the nodes. In a version without it the response itself names a node."""
    first: int = 0
    """The first version with an address."""
    held: Literal["whole", "to nodes", "if small"] = "whole"
    """How much of a response is held. Others pass as they come, and their nodes keep their size."""

    layouts: dict[int, AddressedLayout] = field(default_factory=dict, compare=False)
    """The versions that were met, compiled."""

    @property
    def last(self) -> int:
        """The last version whose layout is known."""
        return int(self.response.VERSIONS.last)

    def knows(self, version: int) -> bool:
        """Whether the layout of a version is known."""
        return int(self.response.VERSIONS.first) <= version <= self.last

    def layout(self, version: int) -> AddressedLayout:
        """A known version, compiled on first use."""
        found = self.layouts.get(version)
        if found is None:
            found = self.layouts[version] = AddressedLayout(self.response, version, self.nodes)
        return found

    def see(self, version: int) -> See | None:
        """Looks at responses that have arrived whole: most pass without a rewriter. None if all do."""
        if version < self.first:
            return None
        return self.layout(version).passing if self.knows(version) else unseen

    def rewriter(self, version: int, size: int, addresses: Addresses, limits: HoldLimits) -> Rewriter:
        """The rewriter of one response."""
        layout, most = self.layout(version), limits.response_bytes
        if self.held == "if small" and size > min(limits.exact_fetch_bytes, most):
            return StreamedRewriter(size, layout, addresses, most)
        return HeldRewriter(size, layout, addresses, most, rest_passes=self.held == "to nodes")


class UnknownLayout:
    """Refuses one response: its version is not among the layouts that are known."""

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


ADDRESSED: dict[int, AddressedApi] = {
    api.response.API_KEY: api
    for api in (
        AddressedApi(ProduceResponse, first=10),
        AddressedApi(FetchResponse, first=16, held="if small"),
        AddressedApi(MetadataResponse, "brokers", held="to nodes"),
        AddressedApi(FindCoordinatorResponse, "coordinators"),
        AddressedApi(DescribeClusterResponse, "brokers"),
        AddressedApi(ShareFetchResponse, held="if small"),
        AddressedApi(ShareAcknowledgeResponse),
    )
}
"""By API key."""


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
    if not api.knows(version):
        return UnknownLayout(api_key, version)
    return api.rewriter(version, size, addresses, limits)
