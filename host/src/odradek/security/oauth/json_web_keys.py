"""A JWKS (RFC 7517) as the public keys that may verify tokens. Bounded, because it comes over the network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from jwt import PyJWK, PyJWTError

MAX_KEYS: Final = 100
MAX_KID_CHARS: Final = 1_000
RSA_BITS: Final = range(2_048, 8_193)
RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
ALGORITHMS = frozenset((*RSA, *CURVES.values(), "EdDSA"))
"""Never HS*: a public key is no secret."""


class BadKeySet(ValueError):
    """A document is not a JWKS with at least one usable key."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key."""

    kid: str | None
    public: Any
    algorithms: Sequence[str]
    """The algorithms that it may verify."""


def read_key_set(document: bytes) -> tuple[VerificationKey, ...]:
    """Return the keys of a document. A key of an unknown kind, or for encryption, is left out.

    Raises:
        BadKeySet: The document is not a JWKS, has too many keys, or no usable one.
    """
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        raise BadKeySet("not JSON") from None
    rows = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(rows, list):
        raise BadKeySet("expected an object with a list named keys")
    if len(rows) > MAX_KEYS:
        raise BadKeySet(f"{len(rows)} keys, at most {MAX_KEYS} are read")
    keys = tuple(key for row in rows if isinstance(row, dict) and (key := usable(row)) is not None)
    if not keys:
        raise BadKeySet("no key can verify a signature; expected RSA of 2048 bits or more, EC or Ed25519")
    return keys


def usable(row: Mapping[str, Any]) -> VerificationKey | None:
    """Return one key; None if it cannot verify tokens."""
    kid, use = row.get("kid"), row.get("use", "sig")
    if use != "sig" or row.get("kty") not in ("RSA", "EC", "OKP") or "d" in row:
        return None
    if kid is not None and (not isinstance(kid, str) or len(kid) > MAX_KID_CHARS):
        return None
    try:
        public = PyJWK.from_dict({key: value for key, value in row.items() if key != "alg"}).key
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    algorithms = algorithms_of(public)
    if "alg" in row:
        algorithms = [each for each in algorithms if each == row["alg"]]
    return VerificationKey(kid, public, algorithms) if algorithms else None


def algorithms_of(public: object) -> Sequence[str]:
    """Return the algorithms that a public key can verify."""
    if isinstance(public, RSAPublicKey) and public.key_size in RSA_BITS:
        return RSA
    if isinstance(public, EllipticCurvePublicKey):
        return [CURVES[public.curve.name]] if public.curve.name in CURVES else []
    return ["EdDSA"] if isinstance(public, Ed25519PublicKey) else []
