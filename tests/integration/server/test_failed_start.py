"""A start that fails leaves nothing locked and no empty directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import PluginConfig, RequestContext, hookimpl
from odradek.plugin.config import ConfigError
from support.hosts import running_host


class Numbers:
    """An enricher with a label that is no text."""

    def labels(self, client_instance_id: bytes, context: RequestContext) -> dict[str, object]:
        return {"rack": 7}


class BadPlugin:
    @hookimpl
    def odradek_enricher(self, config: PluginConfig) -> Numbers:
        return Numbers()


def failing(data_dir: Path, *settings: str, plugins: HostPluginManager | None = None) -> None:
    with pytest.raises(ConfigError):
        running_host(data_dir, *settings, plugins=plugins).__enter__()


def test_a_start_that_fails_late_unlocks_the_directory(tmp_path: Path) -> None:
    failing(tmp_path, "telemetry.topic.name=..")

    with running_host(tmp_path) as host:
        assert host.host.logs.directories == (tmp_path / "logs",)


def test_a_plugin_is_refused_before_a_directory_is_made(tmp_path: Path) -> None:
    plugins = HostPluginManager()
    plugins.add("bad", BadPlugin(), "bad", "1")

    failing(tmp_path / "data", plugins=plugins)

    assert not (tmp_path / "data").exists()


def test_a_directory_in_use_leaves_no_other_directory(tmp_path: Path) -> None:
    with running_host(tmp_path / "first", f"log.dirs={tmp_path / 'shared'}"):
        failing(tmp_path / "second", f"log.dirs={tmp_path / 'new'},{tmp_path / 'shared'}")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "shared"]
