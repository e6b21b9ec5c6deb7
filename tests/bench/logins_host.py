"""The host of ``bench.logins``: an open listener and one with SASL.

Prints ``ready port=N`` with the open one; the other's port is in ``guarded.json`` of the data directory.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import uvloop

from odradek.server.config import load_config
from odradek.server.host import Host

SETTINGS = (
    "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms=SCRAM-SHA-256,PLAIN,OAUTHBEARER",
    "max.authentication.rate.per.ip=1000000",
)


async def main(folder: Path, keys: str) -> None:
    """Run until standard input closes."""
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), closed.set)
    settings = (*SETTINGS, f"data.dir={folder}", f"sasl.oauthbearer.jwks.endpoint.url={keys}")
    host = Host(load_config(None, settings))
    await host.start()
    (folder / "guarded.json").write_text(json.dumps(host.listeners[1].bound_port))
    print(f"ready port={host.listeners[0].bound_port}", flush=True)
    await closed.wait()
    await host.stop()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(Path(sys.argv[1]), sys.argv[2]))
