"""At debug, a line for each response with an error: what a client was refused, and why."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from odradek.broker.results import errors
from odradek.plugin.context import RequestContext
from odradek.wire.api_names import api_name

log = logging.getLogger(__name__)


def log_errors(request: Any, context: RequestContext, response: Any) -> None:
    """Log the errors of a response, if it has any, with the request's API and client."""
    response = getattr(response, "response", response)  # it may be wrapped for the quotas
    found = Counter(errors(response))
    if not found:
        return
    extra = {
        "api": api_name(request.API_KEY),
        "version": context.api_version,
        "client_id": context.client_id,
        "connection": context.connection.connection_id,
        "principal": context.connection.principal,
        "errors": [name if count == 1 else f"{name}*{count}" for name, count in found.items()],
    }
    message = getattr(response, "error_message", None)
    if message:
        extra["problem"] = message
    log.debug("answered a request with an error", extra=extra)
