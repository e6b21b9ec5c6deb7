"""``odradek forward``: run forwarders on a telemetry topic of a cluster until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from odradek.broker.spool_settings import SpoolSettings
from odradek.cli.connect import cluster_options
from odradek.cli.errors import CommandFailed
from odradek.cli.forward_run import DEFAULT_GROUP, ForwardRun
from odradek.cli.program_run import Start, announce
from odradek.cli.start_options import check_option, config_options, log_options, tell
from odradek.delivery.spooled_record import INTERVAL_MS, RecordFormat
from odradek.process.freed_memory import FreedMemory
from odradek.process.garbage import tend_garbage
from odradek.process.limits import keep_buffers, run
from odradek.process.log_format import log_to_stderr
from odradek.programs.config import REFERENCE
from odradek.programs.program_keys import Program
from odradek.topic.topic_format import TopicFormat
from odradek.wire.limits import INT32_MAX

DEFAULT_TOPIC = SpoolSettings().topic_name


@click.command(epilog=f"\b\nAll keys of the configuration:\n  {REFERENCE}")
@cluster_options
@click.option(
    "--topic", default=DEFAULT_TOPIC, show_default=True, metavar="NAME", help="The telemetry topic to read."
)
@click.option(
    "--topic-format",
    type=click.Choice([each.value for each in TopicFormat]),
    default=TopicFormat.ODRADEK.value,
    show_default=True,
    help="Format of its records. otlp_*: plain OTLP, as an OpenTelemetry collector writes it.",
)
@click.option(
    "--topic-interval-ms",
    metavar="MS",
    type=click.IntRange(1, INT32_MAX),
    default=INTERVAL_MS,
    show_default=True,
    help="Time between the exports of a client, which OTLP does not tell.",
)
@click.option(
    "--group",
    default=DEFAULT_GROUP,
    show_default=True,
    metavar="NAME",
    help="Start of the names of the consumer groups: each forwarder is in GROUP.FORWARDER.",
)
@check_option
@config_options
@log_options
def forward(
    bootstrap_server: str,
    command_config: Path | None,
    topic: str,
    topic_format: str,
    topic_interval_ms: int,
    group: str,
    only_check: bool,
    config_file: Path | None,
    overrides: tuple[str, ...],
    plugins: tuple[str, ...],
    log_level: str,
    log_format: str,
) -> None:
    """Run forwarders, receivers and exporters on a telemetry topic of a cluster until SIGTERM or SIGINT. Once
    they have joined their groups it prints one line:

    odradek ready group=GROUP[,...] topic=NAME

    Processes with the same group share the partitions of the topic.

    The properties file may also set session.timeout.ms, heartbeat.interval.ms and auto.offset.reset, whose
    default is earliest.
    """
    log_to_stderr(log_level, log_format)
    config = Start(config_file, overrides, plugins, False, log_level, Program.FORWARD).config()
    with config.secrets.hidden_in_errors():
        record_format = RecordFormat(name=TopicFormat(topic_format), interval_ms=topic_interval_ms)
        made = ForwardRun(config, bootstrap_server, command_config, topic, group, record_format)
        if only_check:
            # not at the top: forwarders start without it
            from odradek.cli.forward_check import check_forward

            tell("forward", check_forward(made))
            return
        failures: list[str] = []

        async def main(stop: asyncio.Event) -> None:
            keep_buffers()
            async with made.running(stop) as forwarders:
                tend_garbage(forwarders.spine.clock, forwarders.spine.timer)
                FreedMemory.of_process(forwarders.spine.clock, forwarders.spine.timer)
                made.report(forwarders, config_file, log_level)
                announce(f"odradek ready group={','.join(forwarders.groups)} topic={topic}")
                reason = await forwarders.watch(stop)
                if reason is not None:
                    failures.append(reason)

        run(main)
    if failures:
        raise CommandFailed(f"odradek stopped: {failures[0]}")
