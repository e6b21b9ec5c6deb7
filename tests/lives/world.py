"""The world of one life: a host, perhaps a gateway before it, their disks, and a collector."""

from __future__ import annotations

import asyncio
import gc
import random
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lives.simulated_loop import SimulatedLoop
from lives.truth import Truth
from lives.wires import Listening
from odradek.hosting import forwarder_runner, forwarders
from odradek.hosting.forwarder_runner import ForwarderRunner
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.net import acceptor
from odradek.net.pairs import gateway as gateway_module
from odradek.net.pairs.upstream_side import UpstreamSide
from odradek.plugin import Reject, Retry, TelemetryRecord
from odradek.programs import ground, pushes
from odradek.programs.config import load_config
from odradek.programs.gateway import Gateway
from odradek.programs.host import Host
from support.failing_disk import FailingDisk
from support.spooling import Plugin, name_of

PLAIN, SASL, SSL, GATE = 9_092, 9_093, 9_094, 19_092
TOPIC, PARTITIONS = "kept", 2
REAUTH_MS = 60_000
PUSH, UNLUCKY = "push.", 13
"""A push with a number that this divides is refused for good. A gateway adds records with other names."""


class LoopClock:
    """The time of a simulated loop. Each look takes a while, so that long requests run in turns."""

    def __init__(self, loop: SimulatedLoop, tick_ns: int) -> None:
        self.loop = loop
        self.tick_ns = tick_ns
        self.looked_ns = 0

    def monotonic_ms(self) -> int:
        return int(self.loop.now_s * 1000 + 0.001)

    def now_ms(self) -> int:
        return self.monotonic_ms() + 1_700_000_000_000

    def monotonic_ns(self) -> int:
        self.looked_ns += self.tick_ns
        return int(self.loop.now_s * 1_000_000_000) + self.looked_ns


class LoopRunner(ForwarderRunner):
    """A forwarder whose thread is a task of the simulated loop."""

    def start(self) -> None:
        self.loop = asyncio.get_running_loop()
        if self.feed is not None:
            self.feed.begin(self)
        self.carrying = self.loop.create_task(self.carry())
        self.all = self.loop.create_task(self.carry_and_close())

    def stop(self, timeout_s: float) -> Any:
        async def stopped() -> None:
            self.stop_soon(timeout_s)
            await asyncio.wait({self.all}, timeout=timeout_s)
            self.give_up("stopped")

        return stopped()


def wants_to_stop(_why: str) -> None:
    """All disks of a host have failed: the fate that broke them starts it again."""


class FarSide:
    """A collector that is down at times. It belongs to one incarnation of its site."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.is_dead = False

    async def start(self) -> None:
        """Nothing to prepare."""

    async def close(self) -> None:
        """Nothing to release."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        if self.world.collector_hangs:
            await asyncio.sleep(self.world.chance.choice((0.5, 5.0, 90.0)))
        if self.world.collector_is_down or self.is_dead:
            raise Retry("down")
        named = [(name_of(record.payload.data), record) for record in batch]
        pushed = [(int(name.removeprefix(PUSH)), record) for name, record in named if name.startswith(PUSH)]
        bad = [record for number, record in pushed if number % UNLUCKY == 0]
        if bad:  # the others come again without it
            self.world.truth.rejected.update(number for number, _ in pushed if number % UNLUCKY == 0)
            raise Reject("unlucky", bad)
        self.world.truth.delivered.update(number for number, _ in pushed)


class Site:
    """A host or a gateway on its directory, through its restarts."""

    def __init__(
        self, world: World, name: str, ports: Sequence[int], directory: Path, settings: Sequence[str]
    ) -> None:
        self.world = world
        self.name = name
        self.ports = ports
        self.dials: tuple[type[Any], ...] = (UpstreamSide,) if name == "gateway" else ()
        """Its ends of the connections that it opens."""
        self.directory = directory
        self.settings = list(settings)
        self.host: Host | Gateway
        self.far_side = FarSide(world)
        self.is_up = False
        self.lives = 0

    def config(self, *more: str) -> Any:
        return load_config(None, [*self.settings, f"data.dir={self.directory}", *more])

    def made(self) -> Host | Gateway:
        """A new incarnation, not started."""
        plugins = HostPluginManager()
        self.far_side = FarSide(self.world)
        plugins.add("fake", Plugin({"far": self.far_side}), "fake", "1")
        if self.name == "gateway":
            broker = [("127.0.0.1", PLAIN)]
            return Gateway(self.config(), broker, None, False, wants_to_stop, self.world.clock, plugins)
        return Host(self.config(), self.world.clock, plugins, failed=wants_to_stop)

    async def start(self) -> None:
        self.host = self.made()
        self.world.loop.measured = False  # a process makes its host before the loop serves anybody
        await self.host.start()
        self.is_up, self.lives = True, self.lives + 1
        if self.lives > 1:
            gc.collect()  # what the incarnation before has left is not this one's, nor is the time for it
            self.world.loop.measured = False

    async def stop(self) -> None:
        self.is_up = False
        await self.host.stop()

    async def restart(self) -> None:
        """Stop in peace, and start on the same directory."""
        await self.stop()
        await self.start()

    async def die(self) -> None:
        """Die without a word: the next incarnation finds what the disk has at this moment."""
        self.far_side.is_dead = True
        self.world.truth.deaths += 1
        self.is_up = False
        for end in list(self.world.loop.ends):
            if end.get_extra_info("sockname")[1] in self.ports or isinstance(end.protocol, self.dials):
                end.cut()
        left = self.directory.with_name(f"{self.name}-{self.lives}")
        shutil.copytree(self.directory, left, ignore=shutil.ignore_patterns(".lock"))
        await self.stop()
        self.directory = left
        await self.start()


class World:
    """Everything that a seed decides before anybody connects."""

    def __init__(
        self, loop: SimulatedLoop, chance: random.Random, folder: Path, disk: FailingDisk | None
    ) -> None:
        self.loop = loop
        self.chance = chance
        self.disk = disk
        self.folder = folder
        self.clock = LoopClock(loop, chance.choice((0, 1_000, 50_000)))
        self.truth = Truth()
        self.numbers = count(1)
        """Of pushes and records."""
        self.collector_is_down = self.collector_hangs = False
        self.has_gateway = chance.random() < 0.4
        self.has_tls = chance.random() < 0.15
        common = [
            "plugins.fake.retry.backoff.ms=100", "plugins.fake.retry.backoff.max.ms=2000",
            "plugins.fake.batch.max.age.ms=100",
            f"plugins.fake.batch.max.records={chance.choice((1, 3, 100))}",
            "subscriptions.all.metrics=*", "subscriptions.all.interval.ms=1000",
            f"telemetry.durability={chance.choice(('log', 'log', 'fsync'))}",
            f"queued.max.request.bytes={chance.choice((150_000, 1 << 26))}",
            "socket.request.max.bytes=150000", "shutdown.timeout.ms=3000", "connections.max.idle.ms=60000",
        ]  # fmt: skip
        listeners = f"PLAINTEXT://127.0.0.1:{PLAIN},SASL_PLAINTEXT://127.0.0.1:{SASL}"
        tls: list[str] = []
        if self.has_tls:
            listeners += f",SSL://127.0.0.1:{SSL}"
            tls = self.tls_settings()
        self.host = Site(
            self, "host", (PLAIN, SASL, SSL), folder / "host",
            [*common, f"listeners={listeners}", f"connections.max.reauth.ms={REAUTH_MS}", *tls,
             "sasl.enabled.mechanisms=PLAIN",
             f"max.connections={chance.choice((7, 2_000))}"],
        )  # fmt: skip
        self.sites = [self.host]
        if self.has_gateway:
            self.gateway = Site(
                self, "gateway", (GATE,), folder / "gateway",
                [*common, f"listeners=PLAINTEXT://127.0.0.1:{GATE}", f"gateway.upstream=127.0.0.1:{PLAIN}",
                 "gateway.subscriptions=file", "gateway.drain.ms=2000"],
            )  # fmt: skip
            self.sites.append(self.gateway)

    def tls_settings(self) -> list[str]:
        from support.certificates import Files

        folder = self.folder / "keys"
        folder.mkdir(exist_ok=True)
        return [f"ssl.keystore.location={Files(folder).server}", "ssl.keystore.type=PEM"]

    @contextmanager
    def simulated(self) -> Iterator[None]:
        """Put the loop's ports, threads and chance in the place of the machine's."""
        ids = random.Random(self.chance.random())

        def listening(_family: int, address: tuple[Any, ...], _reuse_port: bool = False) -> Listening:
            return Listening(self.loop, (address[0], address[1]))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(acceptor, "listening_socket", listening)
            patch.setattr(forwarders, "ForwarderRunner", LoopRunner)
            patch.setattr(forwarder_runner, "monotonic_ms", self.clock.monotonic_ms)
            patch.setattr(gateway_module, "time", SimpleNamespace(monotonic_ns=self.clock.monotonic_ns))
            for module in (ground, pushes):
                patch.setattr(module, "random_uuid", lambda: ids.randbytes(16))
            yield
