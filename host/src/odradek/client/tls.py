"""The TLS handshake of a client."""

from __future__ import annotations

import socket
import ssl

from odradek.client.address import Address
from odradek.client.errors import ConnectFailed, TimedOut


def secured(plain: socket.socket, address: Address, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Do the TLS handshake of a new connection, within the timeout of its socket.

    Raises:
        ConnectFailed: The broker is not the one that the client expects, or does not speak TLS.
        TimedOut: The broker does not answer in time.
    """
    try:
        return context.wrap_socket(plain, server_hostname=address.host)
    except ssl.SSLCertVerificationError as error:
        plain.close()
        raise ConnectFailed(f"{address}: the certificate is refused: {error.verify_message}") from None
    except TimeoutError:
        plain.close()
        raise TimedOut(f"{address}: no TLS handshake in time; is this a listener with TLS?") from None
    except OSError as error:
        plain.close()
        raise ConnectFailed(
            f"{address}: the TLS handshake failed: {tls_reason(error)}; is this a listener with TLS?"
        ) from None


def tls_reason(error: OSError) -> str:
    """The reason of a failure, in OpenSSL's words."""
    return str(getattr(error, "reason", None) or error.strerror or error).lower().replace("_", " ")
