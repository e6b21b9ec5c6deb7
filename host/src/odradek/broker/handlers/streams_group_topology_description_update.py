"""StreamsGroupTopologyDescriptionUpdate v0.

Behavior:
    * UNSUPPORTED_VERSION, as from Kafka without a plugin that keeps descriptions. Members are never asked for
      one.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    StreamsGroupTopologyDescriptionUpdateResponse,
)


@answers(StreamsGroupTopologyDescriptionUpdateRequest)
def streams_group_topology_description_update(
    request: StreamsGroupTopologyDescriptionUpdateRequest, context: RequestContext, broker: Broker
) -> StreamsGroupTopologyDescriptionUpdateResponse:
    raise ApiError(
        ErrorCode.UNSUPPORTED_VERSION,
        "The broker has no streams group topology description plugin configured.",
    )
