"""Sends the samples of the outbox: one request in flight per shard."""

from __future__ import annotations

import asyncio
from collections import deque
from itertools import islice

from odradek.plugin import Retry
from odradek_prometheus.remote_write.outbox import Outbox
from odradek_prometheus.remote_write.receiver import Receiver
from odradek_prometheus.remote_write.sample import Sample


async def send_all(outbox: Outbox, receiver: Receiver, samples_per_request: int) -> None:
    """Send everything. Samples that are not settled stay in the outbox, also after a cancellation.

    Raises:
        Retry: The receiver did not accept all of it.
    """
    shards = [shard for shard in outbox.shards if shard]
    outcomes = await asyncio.gather(
        *[send_shard(shard, receiver, samples_per_request) for shard in shards], return_exceptions=True
    )
    failures = [error for error in outcomes if error is not None]
    retries = [error for error in failures if isinstance(error, Retry)]
    if len(retries) < len(failures):
        raise next(error for error in failures if not isinstance(error, Retry))
    if retries:
        waits_s = [error.after_s for error in retries if error.after_s is not None]
        raise Retry(str(retries[0]), max(waits_s, default=None)) from retries[0]


async def send_shard(shard: deque[Sample], receiver: Receiver, most: int) -> None:
    while shard:
        samples = list(islice(shard, most))
        await receiver.write(samples)
        for _ in samples:
            shard.popleft()
