"""The examples in the help of the host's commands that have none of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import click

AT: Final = "--bootstrap-server localhost:9092"
EXAMPLES: Final[Mapping[str, tuple[str, ...]]] = {
    "api-versions": (f"api-versions {AT}",),
    "cardinality": (
        "cardinality top --by metric -n 10",
        f"cardinality estimate {AT} --preset essential",
    ),
    "certs": ("certs --directory certificates --host kafka.example.com",),
    "client-metrics": (
        f"client-metrics {AT} --alter --preset essential",
        f"client-metrics {AT} --describe",
    ),
    "configs": (
        f"configs {AT} --entity-type topics --entity-name orders --describe",
        f"configs {AT} --entity-type topics --entity-name orders --alter --add-config retention.ms=3600000",
    ),
    "conformance": (f"conformance {AT} --client-id my-app --since 30m",),
    "delete-records": (f"delete-records {AT} --offset-json-file offsets.json",),
    "demo": ("demo --console", "demo --gateway --upstream localhost:9092"),
    "forward": (
        f"forward {AT} --topic client_telemetry --config forward.toml",
        f"forward {AT} --topic client_telemetry --config forward.toml --check",
    ),
    "gateway": (
        "gateway --upstream localhost:9092 --set gateway.nodes=0-2 "
        "--set listeners=PLAINTEXT://127.0.0.1:9192",
        "gateway --config gateway.toml --check",
    ),
    "get-offsets": (f"get-offsets {AT} --topic orders",),
    "groups": (
        f"groups {AT} --list",
        f"groups {AT} --describe --group billing",
        f"groups {AT} --group billing --topic orders --reset-offsets --to-earliest --execute",
    ),
    "lag": (f"lag {AT}", f"lag {AT} --group billing --once"),
    "new-plugin": ("new-plugin audit --directory odradek-audit",),
    "plugins": ("plugins --config odradek.toml",),
    "replay": (f"replay {AT} --plugin otlp --since 2h",),
    "serve": (
        "serve --set subscriptions.all.preset=essential --plugin stdout",
        "serve --config odradek.toml --check",
        "serve --ephemeral",
    ),
    "topics": (
        f"topics {AT} --create --topic orders --partitions 6",
        f"topics {AT} --describe --topic orders",
    ),
    "topology": ("topology http://127.0.0.1:9464 --topic orders",),
    "totals": ("totals rebuild /var/lib/odradek/otlp-totals.db",),
    "totals rebuild": ("totals rebuild /var/lib/odradek/otlp-totals.db",),
    "users": (
        f"users {AT} --list",
        f"users {AT} --add alice --password-file alice.password",
    ),
    "verify-plugin": ("verify-plugin otlp --set endpoint=http://localhost:4317",),
}
"""By command, without the name of the program."""
WIDTH: Final = 72


def add_examples(name: str, command: click.Command) -> None:
    """Put the examples of a command, and of those within it, at the end of their help. Again does nothing."""
    lines = EXAMPLES.get(name, ())
    title = "Example:" if len(lines) == 1 else "Examples:"
    text = "\n  ".join((title, *map(in_shell, lines)))
    if lines and text not in (command.epilog or ""):
        command.epilog = "\n\n".join(filter(None, (f"\b\n{text}", command.epilog)))
    if isinstance(command, click.Group):
        for within, each in command.commands.items():
            add_examples(f"{name} {within}", each)


def in_shell(example: str) -> str:
    """The line of a shell, on several lines if it is long: each begins with an option."""
    lines = ["odradek"]
    for part in re.split(" (?=--)", example):
        if len(lines[-1]) + len(part) < WIDTH:
            lines[-1] += f" {part}"
        else:
            lines.append(f"     {part}")
    return " \\\n  ".join(lines)
