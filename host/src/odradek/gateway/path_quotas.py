"""The quotas of a gateway, shared by its pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from odradek.broker.topic_refusals import REFUSALS
from odradek.gateway.pair_identity import PairIdentity
from odradek.quota.controller_mutation_quota import MESSAGE
from odradek.quota.quota_managers import QuotaManagers
from odradek.wire.codec import writer
from odradek.wire.error_code import ErrorCode
from odradek.wire.openings import OTHER_RESPONSES


@dataclass(frozen=True, slots=True, eq=False)
class PathQuotas:
    """The quota managers of the gateway, and its refusals."""

    managers: QuotaManagers
    responses: Mapping[int, type[Any]]
    """The declared responses, by API key."""
    throttled: Callable[[PairIdentity, dict[str, str], int], None] = lambda _client, _quota, _time_ms: None
    """Told of a client that is held back, of the quota, and for how many milliseconds."""

    def response(self, api_key: int) -> type[Any] | None:
        """The declared response of an API, None if it is not known."""
        return self.responses.get(api_key) or OTHER_RESPONSES.get(api_key)

    def refusal(self, request: Any, version: int, correlation_id: int, throttle_ms: int) -> bytes:
        """Return the response to a request whose client has exceeded its quota, without its length."""
        response = REFUSALS[request.API_KEY](request, ErrorCode.THROTTLING_QUOTA_EXCEEDED, MESSAGE)
        response.throttle_time_ms = throttle_ms
        head = correlation_id.to_bytes(4, signed=True) + bytes(version in response.FLEXIBLE)  # and no tags
        return head + bytes(writer(type(response), version)(response))
