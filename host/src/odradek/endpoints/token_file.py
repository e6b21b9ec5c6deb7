"""The token of OAUTHBEARER in a file, for plugins that are clients of librdkafka.

Java's clients and the commands name the file with ``sasl.oauthbearer.token.endpoint.url=file:///PATH``.
librdkafka has no option for a file, but a callback that returns the token and the time when it expires.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from odradek.bounds.small_file import read_small_file

TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105  a key


class TokenError(ValueError):
    """A file has no token that can be used; the message names the file."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


def token_path(url: str) -> Path | None:
    """Return the path of a ``file:`` address; None for another address.

    Raises:
        TokenError: It is not the absolute path of a file on this machine.
    """
    parts = urlsplit(url)
    if parts.scheme != "file":
        return None
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise TokenError(f"expected the file of a token as file:///PATH, found {url!r}")
    if "#" in url or "?" in url:  # they would end the path
        raise TokenError(f"expected # as %23 and ? as %3F in a file: address, found {url!r}")
    return Path(unquote(parts.path))


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A file with one token, which another program renews. It is read again before the token expires."""

    path: Path

    def __call__(self, _config: str = "") -> tuple[str, float]:
        """Return the token, and the time when it expires in seconds since the epoch.

        Raises:
            TokenError: The file cannot be read, or has no token with a time of expiry.
        """
        try:
            token = read_small_file(self.path).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise TokenError(f"the token in {self.path} cannot be read: {error}") from None
        try:
            claims = token.split(".")[1]
            expires_s = json.loads(urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"]
            return token, float(expires_s)
        except (IndexError, KeyError, OverflowError, TypeError, ValueError):
            raise TokenError(f"{self.path} has no signed token (JWT) with the claim exp") from None


def with_token_file(options: Mapping[str, str], now_s: float) -> dict[str, Any]:
    """Return options of librdkafka in which the file of a token has become ``oauth_cb``.

    Without a file they are the same. The token is read now, because librdkafka waits ten seconds for a good
    one.

    Raises:
        TokenError: The address is wrong, the file cannot be used, or its token has expired.
    """
    path = token_path(options.get(TOKEN_URL, ""))
    if path is None:
        return dict(options)
    token = TokenFile(path)
    if token()[1] <= now_s:
        raise TokenError(f"the token in {path} has expired")
    return {key: value for key, value in options.items() if key != TOKEN_URL} | {"oauth_cb": token}
