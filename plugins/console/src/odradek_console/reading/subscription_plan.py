"""The subscriptions that a file wants, and what has to change at a cluster."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from odradek.client.admin import AdminClient
from odradek.client.lease import lease_end_s
from odradek.client.subscriptions import alter_subscription, delete_subscription
from odradek.findings.presets import KEY, UnknownPreset, expanded
from odradek.plugin import ConfigError
from odradek_console.json_form import JsonRow

KEYS: Final = ("metrics", "interval.ms", "match")
IN_FILE: Final = (*KEYS, KEY)
EXPECTED: Final = f"expected tables [subscriptions.NAME] with {', '.join(IN_FILE)}"
Properties = Mapping[str, str]


class Act(StrEnum):
    """A kind of change."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    KEEP = "keep"
    """It is at the cluster only, and stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(JsonRow):
    """The change of one subscription."""

    act: Act
    name: str
    before: Properties
    after: Properties

    @property
    def changed(self) -> list[str]:
        """The keys whose values differ."""
        return [key for key in KEYS if self.before.get(key) != self.after.get(key)]


def read_wanted(path: Path) -> dict[str, dict[str, str]]:
    """Read the tables ``[subscriptions.NAME]`` of a file, which may be the configuration of a host.

    Raises:
        ConfigError: The file cannot be read, or a table is wrong.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8")).get("subscriptions")
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(str(path), f"cannot be read: {error}") from None
    if not isinstance(table, dict):
        raise ConfigError(str(path), EXPECTED)
    return {name: properties(row, f"subscriptions.{name}") for name, row in table.items()}


def properties(row: object, path: str) -> dict[str, str]:
    """The properties of one table, as Kafka stores them: a preset is its metrics and its interval."""
    if not isinstance(row, dict) or not row:
        raise ConfigError(path, f"{EXPECTED}, found {row!r}")
    found = {}
    for key, value in flat(row):
        if key not in IN_FILE:
            raise ConfigError(f"{path}.{key}", f"unknown key; known are {', '.join(IN_FILE)}")
        found[key] = text(value, f"{path}.{key}")
    try:
        return expanded(found)
    except UnknownPreset as error:
        raise ConfigError(path, str(error)) from None


def flat(row: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The keys of a table, where ``interval.ms`` without quotes is a table in it."""
    found: list[tuple[str, Any]] = []
    for key, value in row.items():
        inner = flat(value) if isinstance(value, dict) else None
        found += [(key, value)] if inner is None else [(f"{key}.{part}", each) for part, each in inner]
    return found


def text(value: object, path: str) -> str:
    """A value as Kafka stores it: lists are joined with commas."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise ConfigError(path, f"expected a text, a whole number or a list of texts, found {value!r}")


def plan(wanted: Mapping[str, Properties], stored: Mapping[str, Properties], *, prune: bool) -> list[Step]:
    """The steps from the stored subscriptions to the wanted ones. Leases of watchers are left alone.

    Args:
        wanted: Properties by name.
        stored: The same at the cluster, without defaults.
        prune: Delete subscriptions that are not wanted.
    """
    steps = []
    for name in sorted({*wanted, *stored}):
        before, after = stored.get(name, {}), wanted.get(name, {})
        if before == after or (name not in wanted and lease_end_s(name) is not None):
            continue
        if name not in wanted:
            steps.append(Step(act=Act.DELETE if prune else Act.KEEP, name=name, before=before, after={}))
        else:
            steps.append(
                Step(act=Act.CHANGE if before else Act.CREATE, name=name, before=before, after=after)
            )
    return steps


def apply(admin: AdminClient, steps: Sequence[Step], *, validate_only: bool = False) -> None:
    """Do the steps, deletions last.

    Raises:
        ClientError: The cluster refuses a step. Those before it are done.
    """
    for step in steps:
        if step.act in (Act.CREATE, Act.CHANGE):
            changes = {key: step.after.get(key) for key in step.changed}
            alter_subscription(admin, step.name, changes, validate_only=validate_only)
    for step in steps:
        if step.act is Act.DELETE and not validate_only:
            delete_subscription(admin, step.name)
