"""``reference/configuration.md`` has every key with the type and the default of the code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from odradek.delivery.forwarder_settings import read_settings
from odradek.log.log_config import LogConfig
from odradek.plugin.config import PluginConfig
from odradek.server import config as host_config
from odradek.server.log_keys import LOG_DEFAULTS
from odradek.server.plugins.active_plugin import PluginState, activate
from odradek.server.plugins.plugin_manager import load_plugins
from odradek.telemetry.client_metrics_configs import CONFIG_KEYS
from support.reference_page import blocks, rows, sections

SECTIONS = sections("reference/configuration.md")
HOST = {
    key: row
    for section in ("The host", "Groups", "Quotas", "Connections", "Telemetry", "Transactions")
    for key, row in rows(SECTIONS[section]).items()
}
TOPICS = rows(SECTIONS["Topics"])
SUBSCRIPTIONS = rows(SECTIONS["subscriptions.NAME"])
PLUGINS = rows(SECTIONS["plugins.NAME"])
HEAD = "key"


@dataclass(frozen=True, slots=True)
class Asked:
    """A key as the code reads it."""

    kind: str
    default: object


class RecordingConfig(PluginConfig):
    """Records the keys that are read."""

    asked: dict[str, Asked]

    def text(self, key: str, default: str | None = None) -> str | None:
        self.asked[key] = Asked("text", default)
        return PluginConfig.text(self, key, default)

    def choice(self, key: str, default: str, choices: Sequence[str]) -> str:
        self.asked[key] = Asked(" or ".join(f"`{choice}`" for choice in choices), default)
        return PluginConfig.choice(self, key, default, choices)

    def integer(self, key: str, default: int, least: int = 0, most: int = 2**63 - 1) -> int:
        if most < 2**31 - 1:
            kind = f"integer, {least} to {most}"
        else:
            kind = f"integer, from {least}" if least else "integer"
        self.asked[key] = Asked(kind, default)
        return PluginConfig.integer(self, key, default, least, most)

    def boolean(self, key: str, default: bool) -> bool:
        self.asked[key] = Asked("boolean", str(default).lower())
        return PluginConfig.boolean(self, key, default)

    def texts(self, key: str, default: Sequence[str] = ()) -> list[str]:
        self.asked[key] = Asked("list", ",".join(default) or None)
        return PluginConfig.texts(self, key, default)


def recording() -> RecordingConfig:
    config = RecordingConfig("", {})
    config.asked = {}
    return config


def asked_by_host(monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Asked], set[str]]:
    """Keys with a type, and all keys, of the host's own part of the file."""
    config = recording()
    monkeypatch.setattr(host_config, "PluginConfig", lambda _path, _values: config)
    host_config.load_config()
    return config.asked, set(config.known)


def compare(written: dict[str, list[str]], asked: dict[str, Asked]) -> list[str]:
    """The differences between page and code."""
    wrong = []
    for key, found in asked.items():
        if key not in written:
            wrong.append(f"{key}: not on the page")
            continue
        _, kind, default, *_ = written[key]
        if kind != found.kind:
            wrong.append(f"{key}: type {kind!r}, the code says {found.kind!r}")
        if found.default is not None and default != f"`{found.default}`":
            wrong.append(f"{key}: default {default}, the code says {found.default}")
    return wrong


def test_every_key_of_the_host_has_its_type_and_default(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, _ = asked_by_host(monkeypatch)

    assert asked
    assert compare(HOST, asked) == []


def test_every_key_of_the_host_and_no_other_is_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    _, known = asked_by_host(monkeypatch)

    assert (set(HOST) | set(TOPICS)) - {HEAD} == known


def test_defaults_of_topics_are_those_of_the_log(tmp_path: Path) -> None:
    written = {key: row[2].strip("`") for key, row in TOPICS.items() if key != HEAD}
    file = tmp_path / "odradek.toml"
    file.write_text("".join(f'"{key}" = "{value}"\n' for key, value in written.items()), encoding="utf-8")

    config = host_config.load_config(file)

    assert set(written) == set(LOG_DEFAULTS)
    assert config.log_defaults == LogConfig()


def test_every_key_of_a_subscription_has_its_default() -> None:
    unset = {"metrics": "none", "match": "every client"}

    written = {key: row[2] for key, row in SUBSCRIPTIONS.items() if key != HEAD}

    assert written == {key.name: unset.get(key.name, f"`{key.default}`") for key in CONFIG_KEYS}


def test_every_key_of_a_forwarder_has_its_type_and_default() -> None:
    config = recording()
    read_settings(config)

    assert compare(PLUGINS, config.asked) == []
    assert set(PLUGINS) - {HEAD, "enabled"} == set(config.asked)


@pytest.mark.parametrize(
    "name", ["reference/configuration.md", "howto/enrich-labels.md", "howto/forward-otlp.md"]
)
def test_tables_on_the_pages_are_valid_configuration(name: str, tmp_path: Path) -> None:
    tables = [text for language, text in blocks(name) if language == "toml" and "entry-points" not in text]
    file = tmp_path / "odradek.toml"

    for table in tables:
        file.write_text(table, encoding="utf-8")
        config = host_config.load_config(file)
        active = activate(load_plugins(), config.plugins)
        names = {plugin.name for plugin in active if plugin.state is PluginState.ACTIVE}
        assert names >= config.plugins.keys()

    assert tables
