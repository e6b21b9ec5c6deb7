"""The pipeline of ``odradek demo --spark``: loads pushes into tables and queries them."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from odradek.cli.main import installed_command
from odradek.cli.progress import Progress
from odradek.demo.security import PIPELINE, DemoSecurity
from odradek.plugin.client_quota import ClientQuotaEntity

QUOTA = ClientQuotaEntity(client_id="demo-producer"), {"producer_byte_rate": 15_000.0}
"""A client and its quota: less than it sends, so that it is throttled."""
TABLES = "tables"
FOUR_LINES = """\
   topic = {{"kafka.bootstrap.servers": "{bootstrap}", "subscribe": "__client_telemetry"}}
   raw = spark.readStream.format("odradek").options(**topic).load()
   tables = {{"path": "{dataset}", "checkpointLocation": "{dataset}/_checkpoints/ingest"}}
   raw.writeStream.format("odradek").options(**tables).start()"""
"""What ``odradek spark ingest`` runs."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command of ``odradek spark``, without the dataset."""

    title: str
    command: tuple[str, ...]


def check_pipeline(keep: Path | None) -> None:
    """Check first that the pipeline can be started at the end.

    Raises:
        CommandFailed: The pipeline is not installed.
        click.ClickException: There is no Java, or the folder has tables already.
    """
    if keep is not None and (keep / TABLES).exists():
        raise click.UsageError(f"--keep: {keep / TABLES} exists; name another folder")
    home = os.environ.get("JAVA_HOME")
    if installed_command("spark") is not None and not shutil.which(f"{home}/bin/java" if home else "java"):
        raise click.ClickException("--spark needs Java 17 or newer. Install it, or correct JAVA_HOME")


def quota_line() -> str:
    """The quota in a line for people."""
    entity, limits = QUOTA
    ((name, value),) = limits.items()
    return f"quota of client-id {entity.client_id}: {name}={value:.0f} (it sends more)"


class Pipeline:
    """Runs ``odradek spark`` in child processes.

    Args:
        folder: A temporary folder for the tables.
        keep: The user's folder for the tables, or None.
        security: How the pipeline logs in, or None.
    """

    def __init__(self, folder: Path, keep: Path | None, security: DemoSecurity | None) -> None:
        self.keep = keep
        self.dataset = (folder if keep is None else keep) / TABLES
        self.security = security

    async def show(self, bootstrap: str) -> None:
        """Ingest everything, and print the answers to the queries.

        Raises:
            click.ClickException: The pipeline failed; it has printed the reason.
        """
        steps = (
            Step(
                "load the pushes into Delta tables; Spark takes some seconds to start", self.ingest(bootstrap)
            ),
            Step("list the clients", ("query", "clients")),
            Step(
                "find the slowest producer", ("query", "top", "--metric", "producer.node.request.latency.avg")
            ),
            Step("show when clients were throttled", ("query", "throttled")),
        )
        for number, step in enumerate(steps, 1):
            click.echo(f"\n{number} of {len(steps)}: {step.title}")
            if number == 1:
                click.echo(FOUR_LINES.format(bootstrap=bootstrap, dataset=self.dataset))
            await (self.load if number == 1 else self.run)(*step.command)
        if self.keep is None:
            click.echo("\nthe tables are deleted now; --keep FOLDER keeps them")
        else:
            question = "odradek spark query client --client-id demo-producer"
            click.echo(f"\nthe tables are in {self.dataset}; ask them, for example:")
            click.echo(f"  {question} --dataset {self.dataset}")
        click.echo()

    def ingest(self, bootstrap: str) -> tuple[str, ...]:
        """The command that loads the pushes."""
        login: tuple[str, ...] = ()
        if self.security is not None:
            login = ("--command-config", str(self.security.librdkafka_config(PIPELINE)))
        return ("ingest", "--once", "--master", "local[2]", "--bootstrap-server", bootstrap, *login)

    async def load(self, *arguments: str) -> None:
        """Run a command that takes long; print its lines, and seconds while it prints nothing."""
        process = await asyncio.create_subprocess_exec(
            *self.command(*arguments), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        assert process.stdout is not None
        with Progress("Spark is starting and loading") as progress:
            async for line in process.stdout:
                click.echo(line.decode(errors="replace").rstrip())
                progress.what = "Spark is loading"
        await self.check(process, arguments[0])

    async def run(self, *arguments: str) -> None:
        """Run a command with the terminal of this one."""
        await self.check(await asyncio.create_subprocess_exec(*self.command(*arguments)), arguments[0])

    def command(self, *arguments: str) -> tuple[str, ...]:
        """The command line of a child process."""
        return (sys.executable, "-m", "odradek", "spark", *arguments, "--dataset", str(self.dataset))

    async def check(self, process: asyncio.subprocess.Process, name: str) -> None:
        """Wait for the end of a process.

        Raises:
            click.ClickException: It failed.
        """
        if await process.wait():
            raise click.ClickException(f"odradek spark {name} failed; its output above says why")
