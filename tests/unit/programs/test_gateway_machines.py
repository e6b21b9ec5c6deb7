"""A gateway shares ports between processes only where the system shares their connections."""

from __future__ import annotations

import sys

import pytest

from odradek.plugin import ConfigError
from odradek.programs.config import load_config
from odradek.programs.gateway_pairs import check_listeners


@pytest.mark.parametrize("setting", ["gateway.workers=2", "gateway.reuse.port=true"])
def test_a_shared_port_needs_linux(setting: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config(None, ["listeners=PLAINTEXT://127.0.0.1:9192", setting])
    check_listeners(config)
    monkeypatch.setattr(sys, "platform", "darwin")

    with pytest.raises(ConfigError, match=rf"^{setting.partition('=')[0]}: needs Linux: darwin gives"):
        check_listeners(config)


def test_one_process_needs_no_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    check_listeners(load_config(None, ["listeners=PLAINTEXT://127.0.0.1:9192"]))
