"""Takes metrics of other senders over OTLP, and answers once they are stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Protocol

from odradek.plugin import Intake
from odradek_otlp.reception import Reception
from odradek_otlp.source_settings import SourceSettings

log = logging.getLogger(__name__)


class Listener(Protocol):
    """One address that senders connect to."""

    async def start(self) -> int:
        """Listen; return the port."""

    async def stop(self) -> None:
        """Listen no more, and close the connections. Works at any time after ``start`` was called."""


class OtlpSource:
    """Listens for ``ExportMetricsServiceRequest`` over HTTP, gRPC or both.

    A request is answered with success when the host has stored its metrics, with a partial success if it
    refused some, and its sender is asked to try again if the log has no room.
    """

    def __init__(self, settings: SourceSettings) -> None:
        self.settings = settings
        self.listens = ",".join(str(each) for each in (settings.http, settings.grpc) if each is not None)
        self.ports: list[int] = []
        """The ports that are bound, HTTP first; empty while the source does not run."""
        self.reception: Reception | None = None

    async def run(self, intake: Intake) -> None:
        """Listen until cancelled.

        Raises:
            OSError: An address is in use, or a file of TLS cannot be read.
        """
        reception = self.reception = Reception(self.settings, intake)
        started: list[Listener] = []
        try:
            ports = []
            for listener in self.listeners(reception):
                started.append(listener)
                ports.append(await listener.start())
            self.ports = ports
            log.info("OTLP source listens", extra={"ports": ports})
            intake.listening()
            await asyncio.Event().wait()
        finally:
            self.ports = []
            await asyncio.gather(*(listener.stop() for listener in started))
            await reception.close()

    def listeners(self, reception: Reception) -> Iterator[Listener]:
        """The listeners of the settings. A protocol's library is imported only if it is used."""
        if self.settings.http is not None:
            from odradek_otlp.http_listener import HttpListener

            yield HttpListener(self.settings.http, reception)
        if self.settings.grpc is not None:
            from odradek_otlp.grpc_listener import GrpcListener

            yield GrpcListener(self.settings.grpc, reception)

    def lag(self) -> int | None:
        """Always None: senders do not tell what waits."""
        return None
