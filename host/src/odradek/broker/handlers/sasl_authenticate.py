"""SaslAuthenticate v0-v2 (KIP-152).

Behavior:
    * A wrong name or password is SASL_AUTHENTICATION_FAILED after
      ``connection.failed.authentication.delay.ms``, then the connection is closed. Messages are Kafka's.
    * Without a handshake before it, the connection is closed. After the client has authenticated, and on a
      listener without SASL: ILLEGAL_SASL_STATE.
    * OAUTHBEARER: a refused token is answered without an error code, with the challenge of RFC 7628. The
      client ends the attempt, or sends another token, of which four may be refused.
    * SessionLifetimeMs is the time until the client has to authenticate again (KIP-368), the shorter of
      ``connections.max.reauth.ms`` and the life of its token; 0 if there is none.
Versions:
    * From v1 on the response has SessionLifetimeMs. A client of v0 has the same time, and is not told.
Differs from Kafka:
    * PLAIN checks any SCRAM credential of the user; there are no passwords in files.
    * An unknown user gets the same answer as a wrong password, also with SCRAM.
    * There are no delegation tokens and no channel binding. Extensions of SCRAM are ignored; mandatory ones
      (``m=``) are refused.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.dispatch.throttling import charge_nothing
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


@answers(SaslAuthenticateRequest, charge=charge_nothing)
def sasl_authenticate(
    request: SaslAuthenticateRequest, context: RequestContext, broker: Broker
) -> Deferred[SaslAuthenticateResponse | None]:
    authenticator = broker.authenticators.get(context.connection.connection_id)
    if authenticator is None:
        raise ApiError(
            ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication"
        )
    return authenticator.authenticate(request.auth_bytes, context.api_version)
