"""StreamsGroupTopologyDescriptionUpdate, API key 93 (KIP-1331).

Source: StreamsGroupTopologyDescriptionUpdateRequest.json and its response, Kafka 4.4.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.messages.streams_group_describe import TopologyDescription
from odradek.wire.types import Int16, Int32, Message, String, between, since


class StreamsGroupTopologyDescriptionUpdateRequest(
    Message, api_key=93, versions=between(0, 0), flexible=since(0)
):
    """Give the broker a description of a topology to keep."""

    group_id: String = ""
    member_id: String = ""
    topology_epoch: Int32 = 0
    topology_description: TopologyDescription = field(default_factory=TopologyDescription)


class StreamsGroupTopologyDescriptionUpdateResponse(
    Message, answers=StreamsGroupTopologyDescriptionUpdateRequest
):
    """Answer to `StreamsGroupTopologyDescriptionUpdateRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
