"""OTLP/gRPC (OpenTelemetry Protocol specification 1.x, "OTLP/gRPC"), without generated code."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final
from urllib.parse import unquote

import grpc
import grpc.aio

from odradek.endpoints import Address, ListenerTls, WatchedFiles, not_renewed, read_small_file
from odradek_otlp.reception import Reception
from odradek_otlp.refused_request import INCOMPLETE, RETRY_AFTER_S, Limit, RefusedRequest
from odradek_otlp.rpc_status import status_bytes

SERVICE: Final = "opentelemetry.proto.collector.metrics.v1.MetricsService"
STATUS_DETAILS: Final = "grpc-status-details-bin"
GZIP_MAGIC: Final = b"\x1f\x8b"
"""No message of protobuf begins with it: there is no wire type 7."""
NONE_AND_GZIP: Final = 0b101
"""gRPC's numbers of compressions, as a set."""
GRACE_S: Final = 0.3
CODES: Final = {code.value[0]: code for code in grpc.StatusCode}

Context = grpc.aio.ServicerContext[bytes, bytes]


class GrpcListener:
    """One address."""

    def __init__(self, address: Address, reception: Reception) -> None:
        self.address = address
        self.reception = reception
        settings = reception.settings
        self.tls = settings.tls
        self.message_max_bytes = min(settings.message_max_bytes, settings.request_max_bytes)
        self.server = grpc.aio.server(
            options=(
                # Otherwise another process could listen on the same address and take half of the connections.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", self.message_max_bytes),
                # gRPC decompresses without a limit, so the source does it.
                ("grpc.per_message_decompression", 0),
                ("grpc.compression_enabled_algorithms_bitset", NONE_AND_GZIP),
                ("grpc.max_allowed_incoming_connections", settings.connections_max),
                ("grpc.max_concurrent_streams", settings.requests_max),
                ("grpc.server_handshake_timeout_ms", settings.request_timeout_ms),
                ("grpc.max_connection_idle_ms", settings.idle_timeout_ms),
            )
        )
        # A stream of requests is not read before the handler asks for it, so it takes no memory before that.
        # The one message of a unary call is the same on the wire.
        export = grpc.stream_unary_rpc_method_handler(self.export)
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {"Export": export}),)
        )

    async def start(self) -> int:
        """Listen; return the port.

        Raises:
            OSError: The address is in use, or a file of TLS cannot be read.
        """
        host, port = self.address
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            if self.tls is None:
                bound = self.server.add_insecure_port(target)
            else:
                bound = self.server.add_secure_port(target, GrpcTls(self.tls).credentials())
        except RuntimeError as error:
            raise OSError(f"{target}: {error}") from error
        await self.server.start()
        return bound

    async def stop(self) -> None:
        await self.server.stop(GRACE_S)

    async def export(self, _requests: AsyncIterator[bytes], context: Context) -> bytes:
        """Answer one call."""
        try:
            response = await self.reception.export(GrpcExport(context, self.message_max_bytes))
        except RefusedRequest as refused:
            reason, text = refused.reason, str(refused)
            after_s = RETRY_AFTER_S if reason.is_temporary else None
            details = (STATUS_DETAILS, status_bytes(reason.code, text, after_s))
            await context.abort(CODES[reason.code], text, (details,))
        return response.SerializeToString()


class GrpcExport:
    """A call of gRPC as an `odradek_otlp.reception.Export`."""

    is_json = False

    def __init__(self, context: Context, message_max_bytes: int) -> None:
        self.context = context
        self.announced_bytes = message_max_bytes
        metadata = {str(key): value for key, value in context.invocation_metadata() or ()}
        self.authorization = str(metadata.get("authorization", ""))
        self.peer = address_of(context.peer())

    def is_gzip(self, body: bytes) -> bool:
        return body.startswith(GZIP_MAGIC)

    async def body(self, limit: Limit) -> bytes:
        body = await self.context.read()
        if not isinstance(body, bytes):
            text = "no message, or one that is larger than source.grpc.message.max.bytes"
            raise RefusedRequest(INCOMPLETE, text)
        return body


def address_of(peer: str) -> tuple[str, int]:
    """Address and port of gRPC's text for a peer: ``ipv4:127.0.0.1:4317``, ``ipv6:%5B::1%5D:4317``."""
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    return host.strip("[]"), int(port) if port.isdecimal() else 0


class GrpcTls:
    """The TLS of a server of gRPC. A handshake uses the current files, or the last good ones."""

    def __init__(self, files: ListenerTls) -> None:
        self.files = files
        self.watched = WatchedFiles(files.paths())
        self.watched.changed()

    def credentials(self) -> grpc.ServerCredentials:
        return grpc.dynamic_ssl_server_credentials(
            self.configuration(),
            self.renewed,  # type: ignore[arg-type]  # the stubs miss None
            require_client_authentication=self.files.client_ca is not None,
        )

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """The contents of the files.

        Raises:
            OSError, ValueError: A file is unusable.
        """
        self.files.context()  # gRPC would only log a bad file
        certificate, ca = self.files.certificate, self.files.client_ca
        pair = read_small_file(self.files.key or certificate), read_small_file(certificate)
        trusted = None if ca is None else read_small_file(ca)
        return grpc.ssl_server_certificate_configuration([pair], trusted)

    def renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """None if the files did not change. Called on a thread of gRPC."""
        if not self.watched.changed():
            return None
        try:
            return self.configuration()
        except (OSError, ValueError) as error:
            not_renewed(error)
            return None
