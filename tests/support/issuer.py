"""An issuer of tokens on loopback: its keys and its tokens over HTTP, or HTTPS with its own certificate."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import json
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from support.tokens import claims_of, jwks, signed

JWKS_KEY = "sasl.oauthbearer.jwks.endpoint.url"


class Issuer:
    """The server. Its documents may be changed while it runs."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.keys = jwks()
        self.user = "alice"
        self.lasts_s = 3_600.0
        self.redirects: dict[str, str] = {}
        """The new place of a path that has moved."""
        self.asked: list[str] = []
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.scheme = "http" if tls is None else "https"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    def url(self, path: str) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server.server_port}{path}"

    def token(self, **more: Any) -> str:
        return signed(claims_of(self.user, time.time(), self.lasts_s, **more))

    def document(self, path: str) -> bytes:
        if path == "/token":
            answer = {"access_token": self.token(), "token_type": "Bearer", "expires_in": self.lasts_s}
            return json.dumps(answer).encode()
        return self.keys


def handler_of(issuer: Issuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            issuer.asked.append(self.path)
            moved = issuer.redirects.get(self.path)
            document = b"" if moved else issuer.document(self.path)
            self.send_response(302 if moved else 200)
            if moved:
                self.send_header("Location", moved)
            self.send_header("Content-Length", str(len(document)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(document)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  named by http.server
            pass

    return Handler


@contextlib.contextmanager
def issuing(tls: ssl.SSLContext | None = None) -> Iterator[Issuer]:
    """Run an issuer."""
    issuer = Issuer(tls)
    issuer.thread.start()
    try:
        yield issuer
    finally:
        issuer.server.shutdown()
        issuer.thread.join()
        issuer.server.server_close()


def own_certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for 127.0.0.1 that signs itself: its file, and the context of a server with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "issuer")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .sign(key, SHA256())
    )
    public, both = folder / "issuer.pem", folder / "issuer-and-key.pem"
    public.write_bytes(certificate.public_bytes(Encoding.PEM))
    both.write_bytes(
        public.read_bytes() + key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return public, context
