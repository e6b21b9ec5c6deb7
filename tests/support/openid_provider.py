"""An OpenID provider on loopback, over real HTTP, whose answers tests make wrong."""

from __future__ import annotations

import contextlib
import functools
import html
import json
import secrets
import ssl
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import RSAKey

from odradek.endpoints.http_exchange import exchange

CLIENT_ID = "console"
SECRET = "the-secret-of-the-console"
PAGE = '<title>Provider</title><link rel="icon" href="data:,"><a href="{}">I am ann</a>'
Answer = tuple[int, bytes]


@functools.cache
def new_key(kid: str, number: int = 1) -> RSAKey:
    """A key; another one for each number."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


@dataclass
class OpenIdProvider:
    """The provider. Its fields may be changed while it runs."""

    key: RSAKey = field(default_factory=lambda: new_key("first"))
    """Signs tokens."""
    published: list[RSAKey] = field(default_factory=list)
    """The key set; empty: the key that signs."""
    claims: dict[str, Any] = field(default_factory=dict)
    """Claims of the ID token, beside those that each one has; None leaves one out."""
    user_info: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    """What the provider says of itself in another way than it is."""
    sign: Callable[[dict[str, Any]], str] | None = None
    """Makes an ID token of claims in another way."""
    answers: dict[str, Answer] = field(default_factory=dict)
    """Status and body for a path."""
    silent: set[str] = field(default_factory=set)
    """Paths that get no answer until the end."""
    method: str = "client_secret_basic"
    """How the console must show its secret."""
    has_page: bool = False
    """Whether a user must press a button at the provider, as with a password."""
    error: str = ""
    """What the browser is led back with, in the place of a code."""
    asked: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)
    issuer: str = ""

    def document(self, path: str, form: dict[str, str], login: str) -> Answer:
        """Status and body for a path."""
        if path == "/.well-known/openid-configuration":
            places = {
                "authorization_endpoint": "authorize",
                "token_endpoint": "token",
                "jwks_uri": "jwks",
                "userinfo_endpoint": "userinfo",
            }
            described = {name: f"{self.issuer}/{place}" for name, place in places.items()}
            return 200, json.dumps({"issuer": self.issuer, **described, **self.metadata}).encode()
        if path == "/jwks":
            keys = [each.as_dict(private=False) for each in self.published or [self.key]]
            return 200, json.dumps({"keys": keys}).encode()
        if path == "/userinfo":
            return 200, json.dumps(self.user_info).encode()
        if path == "/token":
            return self.tokens(form, login)
        return 404, b"{}"

    def tokens(self, form: dict[str, str], login: str) -> Answer:
        """The answer for a code, which is good once."""
        basic = b64decode(login.removeprefix("Basic ")).decode() if login else ""
        posted = f"{form.get('client_id', '')}:{form.get('client_secret', '')}"
        asked = self.codes.pop(form["code"], None)
        if {"client_secret_basic": basic, "client_secret_post": posted, "none": posted}[self.method] != (
            f"{CLIENT_ID}:{'' if self.method == 'none' else SECRET}"
        ):
            return 401, b'{"error": "invalid_client"}'
        if (
            asked is None
            or form["grant_type"] != "authorization_code"
            or form["redirect_uri"] != asked["redirect_uri"]
            or create_s256_code_challenge(form["code_verifier"]) != asked["code_challenge"]
        ):
            return 400, b'{"error": "invalid_grant"}'
        now_s = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": "id-of-the-user",
            "aud": CLIENT_ID,
            "iat": now_s,
            "exp": now_s + 60,
            "nonce": asked["nonce"],
        } | self.claims
        claims = {name: value for name, value in claims.items() if value is not None}
        signed = self.sign(claims) if self.sign is not None else self.signed(claims)
        return 200, json.dumps(
            {"access_token": "opaque", "token_type": "Bearer", "id_token": signed}
        ).encode()

    def signed(self, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "RS256", "kid": self.key.kid}, claims, self.key)

    def authorize(self, url: str, tls: ssl.SSLContext | None = None) -> str:
        """What a user's login does at the address where the console has led the browser: the address where
        the provider leads it back.
        """
        answer = exchange(url, timeout_s=60, max_bytes=1_000, tls=tls)
        assert answer.is_redirect, answer.text
        return answer.headers["Location"]

    def led_back(self, query: dict[str, str]) -> str:
        """The address of a browser's next step."""
        assert query["client_id"] == CLIENT_ID
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(8)
        self.codes[code] = query
        result = {"error": self.error, "error_description": "no <b>way"} if self.error else {"code": code}
        return f"{query['redirect_uri']}?{urlencode({**result, 'state': query['state']})}"


def handler_of(provider: OpenIdProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            parts = urlsplit(self.path)
            provider.asked.append(parts.path)
            if parts.path in provider.silent:
                provider.ended.wait()
            location = ""
            if parts.path == "/authorize":
                location = provider.led_back(dict(parse_qsl(parts.query)))
                status, document = 302, b""
                if provider.has_page:
                    status, document, location = 200, PAGE.format(html.escape(location)).encode(), ""
            elif parts.path in provider.answers:
                status, document = provider.answers[parts.path]
            else:
                form = dict(parse_qsl(body))
                status, document = provider.document(parts.path, form, self.headers.get("Authorization", ""))
            with contextlib.suppress(OSError):  # the console may have left
                self.send_response(status)
                if location:
                    self.send_header("Location", location)
                self.send_header("Content-Length", str(len(document)))
                self.send_header("Content-Type", "text/html" if provider.has_page else "application/json")
                self.end_headers()
                self.wfile.write(document)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  named by http.server
            pass

    return Handler


@contextlib.contextmanager
def providing(host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> Iterator[OpenIdProvider]:
    """Run a provider at an address of this machine."""
    provider = OpenIdProvider()
    server = ThreadingHTTPServer((host, 0), handler_of(provider))
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    provider.issuer = f"{'http' if tls is None else 'https'}://{host}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield provider
    finally:
        provider.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()
