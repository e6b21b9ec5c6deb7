"""``odradek subscriptions``: the subscriptions of a cluster as a file wants them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from odradek.client.cluster_watch import read_subscriptions
from odradek.findings.presets import METRICS, metrics_text
from odradek_console.reading.subscription_plan import Act, Properties, Step, apply, plan, read_wanted
from odradek_console.terminal.options import Command, cluster_options, connector, show

SIGNS: Final = {Act.CREATE: "+", Act.CHANGE: "~", Act.DELETE: "-", Act.KEEP: "?"}
CHANGED: Final = 3
"""The exit status of ``plan --check`` if something differs."""


def plan_options(command: Command) -> Command:
    """Add the options that both commands have."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object per step."),
        click.option("--prune", is_flag=True, help="Delete subscriptions that are not in the file."),
        click.option(
            "--file",
            "path",
            required=True,
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="TOML file with tables [subscriptions.NAME], such as the configuration of a host.",
        ),
    ):
        command = option(command)
    return cluster_options(command)


@click.group(
    "subscriptions",
    epilog="\b\nExample:\n  odradek subscriptions plan --bootstrap-server localhost:9092 \\\n"
    "      --file subscriptions.toml",
)
def subscriptions() -> None:
    """Keep the subscriptions of a host or a Kafka cluster as a file wants them."""


@subscriptions.command("plan")
@plan_options
@click.option("--check", is_flag=True, help=f"Exit with status {CHANGED} if something differs.")
@click.pass_context
def plan_command(
    context: click.Context,
    bootstrap_servers: str,
    command_config: Path | None,
    path: Path,
    prune: bool,
    as_json: bool,
    check: bool,
) -> None:
    """Show what has to change, and let the cluster check it; nothing changes."""
    wanted = read_wanted(path)
    with connector(bootstrap_servers, command_config)() as admin:
        steps = plan(wanted, read_subscriptions(admin), prune=prune)
        apply(admin, steps, validate_only=True)
    show_steps(steps, as_json)
    if check and steps:
        context.exit(CHANGED)


@subscriptions.command("apply")
@plan_options
def apply_command(
    bootstrap_servers: str, command_config: Path | None, path: Path, prune: bool, as_json: bool
) -> None:
    """Change the subscriptions of the cluster. All changes are checked before the first one is made."""
    wanted = read_wanted(path)
    with connector(bootstrap_servers, command_config)() as admin:
        steps = plan(wanted, read_subscriptions(admin), prune=prune)
        apply(admin, steps, validate_only=True)
        apply(admin, steps)
    show_steps(steps, as_json, is_done=True)


def show_steps(steps: Sequence[Step], as_json: bool, *, is_done: bool = False) -> None:
    """Print the steps."""
    show((json.dumps(each.to_json()) for each in steps) if as_json else lines(steps, is_done=is_done))


def shown(key: str, properties: Properties) -> str:
    """A property for people, who read the name of a preset rather than its prefixes."""
    found = properties.get(key, "default")
    return metrics_text(found) if key == METRICS else found


def lines(steps: Sequence[Step], *, is_done: bool) -> Iterator[str]:
    for step in steps:
        yield f"{SIGNS[step.act]} {step.name}" + ("  not in the file" if step.act is Act.KEEP else "")
        for key in step.changed if step.act in (Act.CREATE, Act.CHANGE) else ():
            before = f"{shown(key, step.before)} -> " if key in step.before else ""
            yield f"    {key} = {before}{shown(key, step.after)}"
    counts = {act: sum(step.act is act for step in steps) for act in Act}
    words = ("created", "changed", "deleted") if is_done else ("to create", "to change", "to delete")
    texts = [
        f"{counts[act]} {word}" for act, word in zip((Act.CREATE, Act.CHANGE, Act.DELETE), words, strict=True)
    ]
    yield ", ".join([*texts, f"{counts[Act.KEEP]} not in the file"])
