"""What happens to everybody in a life, whatever the clients do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from lives.invariants import accounts
from lives.world import PLAIN, World

MOST: Final = 8
WAIT_S: Final = 15.0
"""The most between two of them."""


class Fate:
    """The fate of one world.

    Args:
        world: The world.
        failures: Takes what is wrong between two blows.
    """

    def __init__(self, world: World, failures: list[str]) -> None:
        self.world = world
        self.chance = world.chance
        self.failures = failures

    async def befall_all(self) -> None:
        """Let a few things happen, one after the other."""
        for _ in range(self.chance.randint(0, MOST)):
            await asyncio.sleep(self.chance.random() * WAIT_S)
            fate = self.chance.choice(FATES)
            self.world.truth.acts[fate.__name__] += 1
            await fate(self)
            for site in self.world.sites:
                if site.is_up:
                    self.failures += accounts(site)

    async def time_passes(self) -> None:
        """Nothing else happens for a while."""
        await asyncio.sleep(self.chance.choice((10.0, 60.0, 200.0)))

    async def collector_comes_or_goes(self) -> None:
        """The collector refuses everything, or takes it again."""
        self.world.collector_is_down = not self.world.collector_is_down

    async def collector_hangs(self) -> None:
        """The collector takes its time, or not any more."""
        self.world.collector_hangs = not self.world.collector_hangs

    async def broker_hangs(self) -> None:
        """Nothing passes to the host or from it, and no connection to it opens."""
        self.world.loop.frozen[PLAIN] = self.world.loop.now_s + self.chance.choice((2.0, 20.0, 90.0))

    async def configuration_is_reloaded(self) -> None:
        """SIGHUP, with another interval."""
        site = self.chance.choice(self.world.sites)
        interval_ms = self.chance.choice((1_000, 2_000))
        site.host.reloader.reload(lambda: site.config(f"subscriptions.all.interval.ms={interval_ms}"))

    async def restart(self) -> None:
        """A host or gateway stops in peace, and starts again."""
        await self.chance.choice(self.world.sites).restart()

    async def death(self) -> None:
        """SIGKILL."""
        await self.chance.choice(self.world.sites).die()

    async def disk_breaks(self) -> None:
        """Writing fails for a while; then the disk is mended, and the host starts again."""
        site, disk = self.chance.choice(self.world.sites), self.world.disk
        if disk is None:
            return
        disk.spared = self.chance.choice((0, 1, 5))
        disk.fail(site.directory, "pwritev", "pwrite", "fsync")
        await asyncio.sleep(self.chance.choice((0.1, 3.0, 20.0)))
        disk.recover()
        await site.restart()


FATES: Final[tuple[Callable[[Fate], Awaitable[None]], ...]] = (
    Fate.time_passes,
    Fate.time_passes,
    Fate.collector_comes_or_goes,
    Fate.collector_comes_or_goes,
    Fate.collector_hangs,
    Fate.broker_hangs,
    Fate.configuration_is_reloaded,
    Fate.restart,
    Fate.death,
    Fate.disk_breaks,
)
