"""The usual context of TLS, which accepts the same certificates on every Python."""

from __future__ import annotations

import ssl
from pathlib import Path


def default_context(
    purpose: ssl.Purpose = ssl.Purpose.SERVER_AUTH,
    *,
    cafile: Path | str | None = None,
    cadata: str | bytes | None = None,
) -> ssl.SSLContext:
    """Return a context as `ssl.create_default_context` does.

    From Python 3.13 on, that refuses each certificate that does not have all extensions of RFC 5280, such as
    one without an authority key identifier. Kafka's clients and brokers, and older Pythons, accept them.
    Signatures, dates and names are checked as ever.
    """
    context = ssl.create_default_context(purpose, cafile=cafile, cadata=cadata)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
