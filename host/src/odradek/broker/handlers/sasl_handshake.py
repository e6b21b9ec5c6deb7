"""SaslHandshake v0-v1 (KIP-43, KIP-152).

Behavior:
    * PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER, if ``sasl.enabled.mechanisms`` has them. Any other
      mechanism gets UNSUPPORTED_SASL_MECHANISM with the enabled ones after a delay, and the connection is
      closed.
    * On a listener without SASL, and after the client has authenticated: ILLEGAL_SASL_STATE.
    * A client whose session has a lifetime may authenticate again (KIP-368), with the same mechanism and as
      the same principal; at most once a second, else ILLEGAL_SASL_STATE. Another mechanism is accepted here,
      as in Kafka, and the next message closes the connection without an answer.
    * After the end of its session, a client's next request must be this one, or the connection is closed.
Versions:
    * After v0 tokens come without a request around them, and a failure closes the connection.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.dispatch.throttling import charge_nothing
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


@answers(SaslHandshakeRequest, charge=charge_nothing)
def sasl_handshake(
    request: SaslHandshakeRequest, context: RequestContext, broker: Broker
) -> SaslHandshakeResponse | Deferred[SaslHandshakeResponse]:
    authenticator = broker.authenticators.get(context.connection.connection_id)
    if authenticator is None:
        raise ApiError(ErrorCode.ILLEGAL_SASL_STATE)
    return authenticator.handshake(request.mechanism, context.api_version)
