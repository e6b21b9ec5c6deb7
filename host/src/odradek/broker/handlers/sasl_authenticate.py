"""SaslAuthenticate v0-v2 (KIP-152).

Behavior:
    * A wrong name or password is SASL_AUTHENTICATION_FAILED after
      ``connection.failed.authentication.delay.ms``, then the connection is closed. Messages are Kafka's.
    * Without a handshake before it the connection is closed; once a client has authenticated, and on a
      listener without SASL: ILLEGAL_SASL_STATE.
    * SessionLifetimeMs is 0: a session ends with its connection.
Differs from Kafka:
    * PLAIN checks the SCRAM credentials of the user, whichever he has; there are no passwords in files.
    * A user who does not exist is answered like one whose password is wrong, also by SCRAM.
    * Delegation tokens and channel binding are not there; the extensions of SCRAM are passed over, those
      that are mandatory (``m=``) refused.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.dispatch.throttling import charge_nothing
from odradek.deferred import Deferred
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse


@answers(SaslAuthenticateRequest, SaslAuthenticateResponse, charge=charge_nothing)
def sasl_authenticate(
    request: SaslAuthenticateRequest, context: RequestContext, broker: Broker
) -> Deferred[SaslAuthenticateResponse]:
    authenticator = broker.authenticators.get(context.connection.connection_id)
    if authenticator is None:
        raise ApiError(
            ErrorCode.ILLEGAL_SASL_STATE, "SaslAuthenticate request received after successful authentication"
        )
    return authenticator.authenticate(request.auth_bytes)
