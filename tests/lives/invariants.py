"""What has to be true of a host or gateway when all is quiet."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lives.sharers import promises_of_groups
from lives.truth import Truth
from lives.world import PARTITIONS, Site
from odradek.log.partition_log import PartitionLog
from odradek.programs.gateway import Gateway
from odradek.programs.host import Host
from odradek.waiting.clock import TimerTask
from odradek.wire.record_batch import record_batches, records
from support.accounts import assert_accounts_balance

OF_A_CONNECTION = (
    "Channel", "ClientSide", "ClientTls", "End", "Exchange", "Handshake", "LargeFrame",
    "LongPoll", "ObservedChannel", "Pair", "PairIdentity", "ReadBytes", "SaslAuthenticator", "Sending",
    "ShareFetching", "ShareLook", "ShareMember", "ShareSession", "ShareWait",
    "Throttled", "TlsTransport", "UpstreamSide", "WireSocket",
)  # fmt: skip
"""Classes of the objects that exist for one connection or one request."""


@dataclass(frozen=True, slots=True)
class Before:
    """A host before its first client."""

    timers: Counter[str]
    objects: Counter[str]


def before(host: Host | Gateway) -> Before:
    return Before(timers(host), objects())


def timers(host: Host | Gateway) -> Counter[str]:
    """What waits for a time, by name."""
    live = [task for _, _, task in host.timer.heap if task.action is not None]
    return Counter(name_of(task) for task in live)


def name_of(task: TimerTask) -> str:
    action: Any = task.action
    action = getattr(action, "func", action)
    return str(getattr(action, "__qualname__", action))


def objects() -> Counter[str]:
    """The objects of connections that live, whether a collector would find them or not."""
    return Counter(name for each in gc.get_objects() if (name := type(each).__name__) in OF_A_CONNECTION)


def still_open(folder: Path) -> set[str]:
    """The open files of a folder: a life has no sockets, and what else this process opens is not its own."""
    found = set()
    for each in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.add(str(each.readlink()))
    return {each for each in found if each.startswith(f"{folder}/")}


def questions(site: Site, truth: Truth, at_first: Before) -> Iterator[str]:
    """Everything that is wrong with a quiet host."""
    host = site.host
    yield from accounts(site)
    yield from still_waiting(host)
    yield from what_waits(host)
    yield from pushes(site, truth)
    if isinstance(host, Host):
        yield from kept_records(host, truth)
        yield from promises_of_groups(host, truth, has_disk_faults=site.world.disk is not None)
    more = timers(host) - at_first.timers
    if more.pop("Goodbyes.forget", 0) > host.pushes.manager.goodbyes.lost_count:
        yield f"{site.name}: more timers than lost clients whose return is waited for"
    if more:
        yield f"{site.name}: timers are left: {dict(more)}"
    if more := objects() - at_first.objects:
        yield f"{site.name}: objects of connections live: {dict(more)}"


def accounts(site: Site) -> Iterator[str]:
    """D6: each push is in exactly one place."""
    host = site.host
    if not host.telemetry.accounts.balanced:
        yield f"the accounts do not balance: {host.telemetry.accounts}"
    for runner in host.forwarders:
        if not runner.stats().balanced:
            yield f"the accounts of {runner.name} do not balance: {runner.stats()}"
    if isinstance(host, Gateway):
        return  # its own records are in no account of pushes
    try:
        assert_accounts_balance(host)
    except AssertionError as error:
        yield f"the accounts do not balance: {error}"


def still_waiting(host: Host | Gateway) -> Iterator[str]:
    """No push waits for the log."""
    if host.telemetry.accounts.waiting:
        yield f"pushes wait: {host.telemetry.accounts}"


def what_waits(host: Host | Gateway) -> Iterator[str]:
    """Nothing is held for anybody."""
    held = {
        "channels": sum(len(each.channels) for each in host.listeners),
        "peers": sum(len(each.peers) for each in host.listeners),
        "connecting": sum(len(each.connecting) for each in host.listeners),
        "connections": host.ground.connection_quotas.total,
        "request bytes": host.memory.requests.total_bytes,
        "answer bytes": host.memory.answers.total_bytes,
    }
    for what, number in held.items():
        if number:
            yield f"{number} {what} are left"


def pushes(site: Site, truth: Truth) -> Iterator[str]:
    """Every acknowledged push has been delivered, and none more often than it may."""
    took = {number for number, name in truth.pushed.items() if name == site.name}
    if lost := took - truth.delivered.keys() - truth.rejected:
        yield f"{site.name}: acknowledged and not delivered: {sorted(lost)}"
    most = 1 + truth.deaths
    if often := {number: times for number, times in truth.delivered.items() if times > most}:
        yield f"delivered more than {most} times: {often}"


def kept_records(host: Host, truth: Truth) -> Iterator[str]:
    """Every acknowledged record is in the log, once."""
    topic = "kept"
    found: dict[tuple[str, int, int], bytes | None] = {}
    for partition in range(PARTITIONS):
        log = host.broker.topics.log(topic, partition)
        assert log is not None
        found |= {(topic, partition, offset): value for offset, value in values(log)}
    expected = truth.records | truth.open_records
    if lost := {place for place, value in expected.items() if found.get(place) != value}:
        yield f"acknowledged records are lost: {sorted(lost)}"
    seen = Counter(value for value in found.values() if value)
    if twice := [value[:10] for value, times in seen.items() if times > 1]:
        yield f"records are in the log twice: {twice}"


def values(log: PartitionLog) -> Iterator[tuple[int, bytes | None]]:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        for header, batch in record_batches(log.read(offset, 1 << 20)):
            if not header.is_control:
                yield from ((each.offset, each.value) for each in records(batch, header))
            offset = header.next_offset
