"""HAProxy with the file of ``contrib/haproxy``, and two gateways behind it, on addresses of this machine."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from contrib.capture.ports import free_range

from support.gateways import GatewayProcess
from support.reference_page import ROOT
from support.waiting import wait_until

FOLDER = ROOT / "contrib/haproxy"
PLACES = {"a": "127.0.0.2", "b": "127.0.0.3"}
"""The address of each gateway."""
NODES, IDS = 3, "1-3"
"""The brokers of `odradek serve --ephemeral --brokers 3`; those of the file begin with 0."""
OUTER, INNER, HEALTH, STATUS = 9092, 9192, 9464, 8404
"""The ports of the files."""


def haproxy() -> str:
    """The program; the test is skipped without it."""
    found = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if found is None:
        pytest.skip("HAProxy is not installed: apt-get install haproxy")
    return found


@dataclass
class Balanced:
    """Two gateways behind HAProxy."""

    upstream: str
    folder: Path
    first: int = field(default_factory=lambda: free_range(2 * (NODES + 1) + 2))
    gateways: dict[str, GatewayProcess] = field(default_factory=dict)

    @property
    def ports(self) -> dict[int, int]:
        """The ports here, by those of the files."""
        files = (*range(OUTER, OUTER + NODES + 1), *range(INNER, INNER + NODES + 1), HEALTH, STATUS)
        return {port: self.first + place for place, port in enumerate(files)}

    @property
    def bootstrap(self) -> str:
        """What clients are given."""
        return f"localhost:{self.ports[OUTER]}"

    def here(self, text: str) -> str:
        """The text of a file with the addresses and ports of this machine."""
        for name, address in PLACES.items():
            text = text.replace(f"gateway-{name}", address)
        text = re.sub("|".join(map(str, self.ports)), lambda port: str(self.ports[int(port[0])]), text)
        return text.replace("bind :", "bind 127.0.0.1:").replace("kafka.example.com", "localhost")

    def start(self, name: str) -> None:
        """Start a gateway with the file, and wait until HAProxy sends clients there."""
        path = self.folder / f"gateway-{name}.toml"
        text = self.here((FOLDER / "gateway.toml").read_text()).replace("0.0.0.0", PLACES[name])
        path.write_text(text)
        own = [f"data.dir={self.folder / name}", f"gateway.name={name}", f"gateway.nodes={IDS}"]
        options = [part for each in own for part in ("--set", each)]
        arguments = ("--config", str(path), "--upstream", self.upstream, *options)
        self.gateways[name] = GatewayProcess(*arguments)
        wait_until(lambda: self.is_up(name), f"gateway {name} is up", patience_s=60)

    def restart(self, name: str) -> None:
        """Restart a gateway as an operator does: stop it, start it, and wait for HAProxy."""
        assert self.gateways[name].terminate() == 0
        self.start(name)

    def is_up(self, name: str) -> bool:
        """Whether HAProxy sends new connections to a gateway."""
        line = f'haproxy_server_status{{proxy="bootstrap",server="{name}",state="UP"}} 1'
        url = f"http://127.0.0.1:{self.ports[STATUS]}/metrics"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as page:
            return line in page.read().decode()
        return False


@contextlib.contextmanager
def balanced(upstream: str, folder: Path) -> Iterator[Balanced]:
    """Two gateways in front of a cluster of three nodes, behind HAProxy."""
    program, made = haproxy(), Balanced(upstream, folder)
    config = folder / "haproxy.cfg"
    config.write_text(made.here((FOLDER / "haproxy.cfg").read_text()))
    balancer = subprocess.Popen([program, "-db", "-f", str(config)], stderr=subprocess.DEVNULL)
    try:
        for name in PLACES:
            made.start(name)
        yield made
    finally:
        balancer.kill()
        balancer.wait()
        for gateway in made.gateways.values():
            gateway.kill()
