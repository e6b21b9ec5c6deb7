"""The processes of a gateway with several workers: the parent, and one worker."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import click

from odradek.cli.errors import CommandFailed
from odradek.cli.gateway_run import GatewayRun, ready_line
from odradek.cli.program_run import Failed, Start, announce, begin, run_server
from odradek.plugin.config import ConfigError
from odradek.process.limits import on_hangup, run
from odradek.programs.config import HostConfig
from odradek.programs.gateway import Gateway
from odradek.programs.gateway_workers.former import delivered, delivering
from odradek.programs.gateway_workers.link import Assignment, ParentLink, parent_channel
from odradek.programs.gateway_workers.ports import check_free
from odradek.programs.gateway_workers.share import check_plugins, check_workers, former_workers, shared
from odradek.programs.gateway_workers.workers import WorkerEnded, Workers
from odradek.upkeep.data_dir import DataDir

log = logging.getLogger(__name__)

PARENT_LOCK = ".lock.workers"
"""Locked by the parent; ``.lock`` is the first worker's, and that of a gateway without workers."""
WORKER = "--worker"


def needs_parent(config: HostConfig) -> bool:
    """Whether the gateway has several processes, or former workers have left a folder."""
    return config.gateway.workers > 1 or bool(former_workers(config))


def run_parent(start: Start, config: HostConfig) -> None:
    """Run the workers of a gateway until SIGTERM or SIGINT.

    Raises:
        CommandFailed: A worker ended before it was ready.
        ConfigError: The configuration is not usable.
    """
    check_workers(config)
    made = GatewayRun(config)
    failed: list[WorkerEnded] = []
    with ExitStack() as held:
        held.enter_context(DataDir(config.data_dir, file=PARENT_LOCK))

        async def main(stop: asyncio.Event) -> None:
            if not config.gateway.reuse_port:
                await check_free(config, made.routings)
            # the same program again: interpreter, options and configuration are those of this process
            workers = Workers(config, [sys.executable, *sys.orig_argv[1:], WORKER])
            try:
                asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, workers.step_down)
                await workers.start(stop)
                on_hangup(partial(reload_workers, workers, start), stop)
                if not stop.is_set():
                    announce(ready_line(config, workers.addresses))
                await stop.wait()
            except WorkerEnded as error:
                failed.append(error)
            finally:
                await workers.stop()

        run(main)
    for each in failed:
        if each.status is not None and each.status > 0:  # the worker has said why
            click.get_current_context().exit(each.status)
        raise CommandFailed(f"odradek stopped: {each}")


def reload_workers(workers: Workers, start: Start) -> None:
    """Let all workers reload the configuration."""
    try:
        workers.reload(start.config)
    except ConfigError as error:
        log.error("configuration not reloaded, the old one stays", extra={"problem": str(error)})


def run_worker(start: Start) -> None:
    """Run one worker until SIGTERM, or until its parent is gone.

    Raises:
        CommandFailed: The gateway stopped by itself.
        ConfigError: The configuration is not usable, or no parent has started this process.
    """
    channel = parent_channel()
    assignment = Assignment.received(channel)
    make = logging.getLogRecordFactory()

    def marked(*arguments: object, **more: object) -> logging.LogRecord:
        record = make(*arguments, **more)
        record.gateway_worker = assignment.worker
        return record

    logging.setLogRecordFactory(marked)
    own = replace(start, adapted=partial(shared, worker=assignment.worker))
    config = own.config()

    async def main(stop: asyncio.Event, failed: Failed) -> None:
        if assignment.worker < config.gateway.workers:
            await serve(own, config, assignment, channel, failed, stop)
        else:
            await deliver(config, channel, failed, stop)

    run_server(main)


async def serve(
    start: Start,
    config: HostConfig,
    assignment: Assignment,
    channel: socket.socket,
    failed: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    """Serve clients, on the ports of all workers."""
    made = GatewayRun(config)

    def prepare(gateway: Gateway) -> None:
        if config.gateway.workers > 1:
            check_plugins(gateway.plugins.all)
        for _ in range(assignment.steps):
            gateway.pairs.step_down()

    # once for all workers: a companion has the whole topic, a source may listen on a port
    async with made.running(failed, prepare, is_first=not assignment.worker) as gateway:
        loop, step_down = asyncio.get_running_loop(), gateway.pairs.step_down
        loop.add_signal_handler(signal.SIGUSR1, step_down)
        begin(gateway, start, stop)
        link = ParentLink(channel, gateway.spine, step_down, stop.set)
        await link.start(gateway.addresses)
        await stop.wait()
    await link.close()


async def deliver(
    config: HostConfig, channel: socket.socket, failed: Callable[[str], None], stop: asyncio.Event
) -> None:
    """Deliver what a former worker has left."""
    async with delivering(config, failed) as spine:
        link = ParentLink(channel, spine, lambda: None, stop.set)
        await link.start([])
        await delivered(spine, stop)
    await link.close()
