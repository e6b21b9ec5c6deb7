"""Odradek: a Kafka-protocol host for client telemetry (KIP-714).

A host in a program of your own:

>>> import asyncio, tempfile, odradek
>>> async def main(folder):
...     config = {"data.dir": folder, "listeners": "PLAINTEXT://127.0.0.1:0"}
...     async with odradek.run(config) as host:
...         return host.bootstrap
>>> with tempfile.TemporaryDirectory() as folder:
...     asyncio.run(main(folder)).startswith("127.0.0.1:")
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.bounds.first_use import on_first_use

if TYPE_CHECKING:
    from odradek.programs.embedded import EmbeddedHost, run

__version__ = "0.1.0"

__all__ = ["EmbeddedHost", "__version__", "run"]

__getattr__ = on_first_use(__name__, **{"programs.embedded": "EmbeddedHost run"})
