"""Keys, key sets and tokens for tests of OAUTHBEARER. The keys are made once per process."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

Claims = dict[str, Any]
KID = "k1"


def private_key(algorithm: str = "RS256", name: str = "first") -> Any:
    """A private key for an algorithm; another one for each name."""
    return made(algorithm if algorithm[0] == "E" else "RSA", name)


@cache
def made(algorithm: str, _name: str) -> Any:
    if algorithm.startswith("ES"):
        return ec.generate_private_key({"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1()}[algorithm])
    if algorithm == "EdDSA":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(65537, 2048)


def public_jwk(algorithm: str = "RS256", name: str = "first", **fields: Any) -> dict[str, Any]:
    """The public key as a row of a JWKS; a field that is None is left out."""
    kind = jwt.get_algorithm_by_name(algorithm)
    row = dict(kind.to_jwk(private_key(algorithm, name).public_key(), as_dict=True))
    row.pop("key_ops", None)
    return {key: value for key, value in (row | {"kid": KID} | fields).items() if value is not None}


def jwks(*rows: dict[str, Any]) -> bytes:
    """A document of keys."""
    return json.dumps({"keys": rows or [public_jwk()]}).encode()


def signed(claims: Claims, algorithm: str = "RS256", name: str = "first", **headers: Any) -> str:
    """A token; a header field that is None is left out."""
    fields = {key: value for key, value in ({"kid": KID} | headers).items() if value is not None}
    return jwt.encode(claims, private_key(algorithm, name), algorithm, fields)


def unsecured(claims: Claims, **headers: Any) -> str:
    """A token without a signature."""
    parts = [json.dumps(part).encode() for part in ({"alg": "none"} | headers, claims)]
    return "".join(urlsafe_b64encode(part).decode().rstrip("=") + "." for part in parts)


def claims_of(user: str, now_s: float, lasts_s: float = 3600, **more: Any) -> Claims:
    """The claims of a user; one that is None is left out."""
    claims: Claims = {"sub": user, "iat": int(now_s), "exp": int(now_s + lasts_s)} | more
    return {key: value for key, value in claims.items() if value is not None}
