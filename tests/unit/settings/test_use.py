"""Every setting that is declared is read somewhere, or says that it has no effect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from odradek.broker.throttled_replicas import ThrottledReplicas
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.group.share_config import LIMITED as OF_SHARES
from odradek.group.streams_config import LIMITED as OF_STREAMS
from odradek.hosting.active_plugin import PluginSettings
from odradek.log.log_config import LogConfig
from odradek.programs.config import HostConfig
from odradek.quota.replication_rates import ReplicationRates
from odradek.settings.setting import Setting, declared, sections, walk

SOURCE = Path(__file__).parents[3] / "host/src/odradek"
CLASSES = (HostConfig, ForwarderSettings, PluginSettings, ReplicationRates)
BY_NAME = (
    "consumer_min_",
    "consumer_max_",
    *(f"{end}_{name.removeprefix('num_')}" for name in OF_SHARES + OF_STREAMS for end in ("min", "max")),
)
"""Limits of groups: `group_properties` reads them by the name of what they limit."""
OF_DELIVERY = {
    "auto_offset_reset", "delivery_count_limit", "isolation_level", "max_share_sessions",
    "partition_max_record_locks", "record_lock_duration_ms", "renew_acknowledge_enable",
}  # fmt: skip
"""Settings of the delivery to share groups: ShareFetch and ShareAcknowledge read them."""


@cache
def attributes_read() -> frozenset[str]:
    """The names of all attributes that the host's code reads."""
    return frozenset(
        node.attr
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


def unused(kind: type[object], read: frozenset[str]) -> Iterator[str]:
    """The keys of a dataclass of settings, and of its sections, whose fields nothing reads."""
    for path, declaration in walk(kind):
        if declaration.used and path[-1] not in read | OF_DELIVERY and not path[-1].startswith(BY_NAME):
            yield declaration.name


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_setting_is_read(kind: type[object]) -> None:
    read = attributes_read()

    assert list(unused(kind, read)) == []


def test_a_setting_that_nothing_reads_is_found() -> None:
    read = attributes_read() - {"linger_ms", "node_id"}

    assert sorted(unused(HostConfig, read)) == ["node.id", "telemetry.linger.ms"]


def test_a_setting_without_effect_is_read_by_nothing_and_says_so() -> None:
    without = {name: each for name, each in declared(LogConfig).items() if not each.used}

    read = attributes_read()

    assert without
    assert [name for name in without if name in read] == []
    assert all("not used" in each.documentation for each in without.values())


def test_every_section_is_read() -> None:
    read = attributes_read()

    assert [name for name in sections(HostConfig) if name not in read] == []


def all_settings() -> list[Setting]:
    kinds = (*CLASSES, ThrottledReplicas)
    return [each for kind in kinds for _, each in walk(kind)]


def test_each_key_is_declared_once() -> None:
    names = [each.name for _, each in walk(HostConfig)]

    assert len(names) == len(set(names))


def test_each_declaration_is_whole() -> None:
    assert [
        each.name
        for each in all_settings()
        if not re.fullmatch(r"[A-Z`].*\.", each.documentation)
        or (not each.unset and each.default_text is None)
    ] == []


def test_the_default_of_a_dynamic_setting_is_one_of_its_values() -> None:
    dynamic = [each for each in all_settings() if each.dynamic and each.default is not None]

    assert len(dynamic) > 30
    assert [each.name for each in dynamic if each.parse(each.default_text or "") != each.default] == []
