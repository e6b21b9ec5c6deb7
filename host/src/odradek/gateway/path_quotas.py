"""The quotas of a gateway, shared by its pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from odradek.broker.dispatch.routes import Route
from odradek.quota.controller_mutation_quota import MESSAGE
from odradek.quota.quota_managers import QuotaManagers
from odradek.wire.error_code import ErrorCode
from odradek.wire.openings import OTHER_RESPONSES


@dataclass(frozen=True, slots=True, eq=False)
class PathQuotas:
    """The quota managers of the gateway's host, and the refusals of its handlers."""

    managers: QuotaManagers
    routes: Mapping[int, Route]
    """By API key."""

    def response(self, api_key: int) -> type[Any] | None:
        """The declared response of an API, None if it is not known."""
        route = self.routes.get(api_key)
        return OTHER_RESPONSES.get(api_key) if route is None else route.response

    def refusal(self, request: Any, version: int, correlation_id: int, throttle_ms: int) -> bytes:
        """Return the response to a request whose client has exceeded its quota, without its length."""
        route = self.routes[request.API_KEY]
        response = route.refusal(request, ErrorCode.THROTTLING_QUOTA_EXCEEDED, MESSAGE)
        response.throttle_time_ms = throttle_ms
        return bytes(route.at(version).frame(correlation_id, response))[4:]
