"""``ssl.cipher.suites``: the IANA names that Kafka uses, as OpenSSL's names."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

TLS_1_3_SUITES: Final = frozenset(
    ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
)
"""Python cannot choose among these."""
SUITE: Final = re.compile(r"TLS_(?P<exchange>[A-Z_]+)_WITH_(?P<cipher>[A-Z0-9_]+?)(?P<mac>_SHA(?:256|384)?)?")


def openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a suite of TLS 1.2: ``ECDHE-RSA-AES256-GCM-SHA384``.

    Raises:
        ValueError: It is not an IANA name of such a suite.
    """
    match = SUITE.fullmatch(suite)
    if match is None:
        raise ValueError(f"expected IANA names like TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, found {suite!r}")
    exchange = "" if match["exchange"] == "RSA" else match["exchange"] + "_"
    cipher = re.sub(r"_(128|256)", r"\1", match["cipher"].removesuffix("_CBC"))
    mac = "" if cipher.startswith("CHACHA20") else match["mac"] or ""
    return f"{exchange}{cipher}{mac}".replace("_", "-")


def openssl_names(suites: Collection[str]) -> list[str]:
    """Return OpenSSL's names of the suites of TLS 1.2 among these.

    Raises:
        ValueError: A name is not IANA's, or some suites of TLS 1.3 are named and some are not.
    """
    named = TLS_1_3_SUITES.intersection(suites)
    if named and named != TLS_1_3_SUITES:
        missing = ", ".join(sorted(TLS_1_3_SUITES - named))
        raise ValueError(
            f"suites of TLS 1.3 cannot be chosen one by one: add {missing}, or name none of them"
        )
    return [openssl_name(suite) for suite in suites if suite not in TLS_1_3_SUITES]
