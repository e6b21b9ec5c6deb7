"""One life by its seed: a world, its clients and its fate; then quiet, and the questions."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import tempfile
import traceback
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lives.actors import Committer, Fetcher, Producer, Pusher
from lives.audit import audit
from lives.clients import PASSWORD, USER, Client
from lives.fate import Fate
from lives.invariants import before, questions, still_open
from lives.sharers import LETTERS_TOPIC, Sharer, settings
from lives.simulated_loop import SimulatedLoop
from lives.strangers import Member, Operator, Stranger
from lives.truth import Truth
from lives.world import PARTITIONS, PLAIN, TOPIC, World
from odradek.client.users import new_credential
from odradek.security.scram import MIN_ITERATIONS, ScramMechanism
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from support.failing_disk import FailingDisk

ACTORS = (Pusher, Pusher, Pusher, Producer, Producer, Producer, Committer, Fetcher, Fetcher, Member,
          Sharer, Sharer, Operator, Stranger, Stranger)  # fmt: skip
MOST_ACTORS = 32
ARRIVE_WITHIN_S = 60.0
CREDENTIAL = new_credential(USER, ScramMechanism.SCRAM_SHA_256, PASSWORD, MIN_ITERATIONS, b"salt of a life")
SETTLED_WITHIN_S = 600
MEMORY = Path("/dev/shm")
"""Disks are slow, and a life that is told by its seed needs none."""
SLOW = "a step took"
LONGEST_NS = 50_000_000
QUIET_S = 130.0
"""Longer than sessions, transactions, throttle times and idle connections last."""


class Life:
    """What becomes of one seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.loop = SimulatedLoop(self.chance)
        self.folder = folder
        self.truth = Truth()
        self.failures: list[str] = []

    def live(self) -> list[str]:
        """Live it; what was not as it has to be, empty if all is well."""
        random.seed(self.seed)
        has_disk_faults = self.chance.random() < 0.25
        with pytest.MonkeyPatch.context() as patch:
            disk = FailingDisk(patch) if has_disk_faults else None
            self.world = World(self.loop, self.chance, self.folder, disk)
            self.truth = self.world.truth
            with self.world.simulated():
                self.run()
        return self.failures

    def run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(self.unhandled)
        gc.collect()  # what was before is not this life's
        gc.disable()
        try:
            with tracebacks(self.failures):
                self.loop.run_until_complete(self.story())
            if files := still_open(self.folder):
                self.failures.append(f"files stay open: {sorted(files)}")
        except Exception:  # noqa: BLE001  told with the seed
            self.failures.append(traceback.format_exc())
        finally:
            self.loop.close()
            asyncio.set_event_loop(None)
            gc.collect()
            gc.enable()

    def unhandled(self, _loop: Any, context: dict[str, Any]) -> None:
        """The loop has caught an error: no one else would tell."""
        error = context.get("exception")
        text = "".join(traceback.format_exception(error)) if error else ""
        self.failures.append(f"{context['message']}: {text}")

    async def story(self) -> None:
        """The whole life."""
        world = self.world
        for site in world.sites:
            await site.start()
        await self.prepare()
        await asyncio.sleep(1)
        at_first = {site.name: before(site.host) for site in world.sites}
        actors = [self.begin(self.actor(number)) for number in range(self.chance.randint(5, MOST_ACTORS))]
        fates = self.begin(Fate(world, self.failures).befall_all())
        await asyncio.wait([*actors, fates])
        world.collector_is_down = world.collector_hangs = False
        await self.settle()
        self.failures += await audit(world)
        await asyncio.sleep(60)
        self.failures += self.truth.troubles
        for site in world.sites:
            self.failures += questions(site, self.truth, at_first[site.name])
        took_ns, what = self.loop.longest
        if took_ns > LONGEST_NS:
            self.failures.append(f"{SLOW} {took_ns / 1e6:.0f} ms of CPU: {what}")
        for site in reversed(world.sites):
            await site.stop()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            self.failures.append(f"a task is left: {task!r}")
            task.cancel()
        await asyncio.sleep(1)

    def begin(self, story: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a part of the life; an error in it is told."""

        async def told() -> None:
            try:
                await story
            except Exception:  # noqa: BLE001  told with the seed
                self.truth.troubles.append(traceback.format_exc())

        return self.loop.create_task(told())

    async def prepare(self) -> None:
        """What the clients need: a topic that keeps everything, and a user."""
        client = Client(self.loop, "admin")
        await client.connect(PLAIN)
        await client.introduce()
        keep = [
            CreatableTopicConfig(name="retention.ms", value="-1"),
            CreatableTopicConfig(name="message.timestamp.type", value="LogAppendTime"),
        ]
        topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1, configs=keep)
        created = await client.ask(CreateTopicsRequest(topics=[topic, LETTERS_TOPIC]))
        assert not any(each.error_code for each in created.topics)
        configured = await client.ask(settings())
        assert not any(each.error_code for each in configured.responses)
        made = await client.ask(AlterUserScramCredentialsRequest(upsertions=[CREDENTIAL]))
        assert not made.results[0].error_code
        auditor = [EntityData(entity_type="client-id", entity_name="auditor")]
        ample = [OpData(key=key, value=1e12) for key in ("consumer_byte_rate", "request_percentage")]
        await client.ask(AlterClientQuotasRequest(entries=[RequestEntryData(entity=auditor, ops=ample)]))
        client.leave()
        await asyncio.sleep(0.1)

    async def actor(self, number: int) -> None:
        await asyncio.sleep(self.chance.random() * ARRIVE_WITHIN_S)
        await self.chance.choice(ACTORS)(self.world, f"client-{number}").live()

    async def settle(self) -> None:
        """Wait until everything is delivered, and everything that ends by time has ended."""
        for _ in range(SETTLED_WITHIN_S):
            stats = [runner.stats() for site in self.world.sites for runner in site.host.forwarders]
            if not any(each.queued or each.in_flight for each in stats):
                break
            await asyncio.sleep(1)
        else:
            self.failures.append(f"not delivered after {SETTLED_WITHIN_S} s: {stats}")
        await asyncio.sleep(QUIET_S)


@contextmanager
def tracebacks(failures: list[str]) -> Iterator[None]:
    """Take what the product logs with a traceback: a bug. Nothing else is written meanwhile."""
    logger = logging.getLogger("odradek")
    before, handler = (logger.level, logger.propagate), Tracebacks(failures)
    logger.setLevel(logging.ERROR)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


class Tracebacks(logging.Handler):
    """Takes log records with a traceback."""

    def __init__(self, failures: list[str]) -> None:
        super().__init__()
        self.failures = failures

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.failures.append(self.format(record))


def lived(seed: int) -> list[str]:
    """Live one seed; what was not as it has to be, empty if all is well.

    A step that was slow is looked at twice: the first one of its kind compiles the codec of its messages, and
    the machine has other work.
    """
    with tempfile.TemporaryDirectory(
        prefix="odradek-life-", dir=MEMORY if MEMORY.is_dir() else None
    ) as folder:
        failures = Life(seed, Path(folder)).live()
    if not failures or not all(each.startswith(SLOW) for each in failures):
        return failures
    with tempfile.TemporaryDirectory(
        prefix="odradek-life-", dir=MEMORY if MEMORY.is_dir() else None
    ) as folder:
        return Life(seed, Path(folder)).live()
