"""SIGHUP: what can be reloaded is, the rest is named, and a bad file changes nothing."""

from __future__ import annotations

import json
import logging
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.hosting.offers import ENRICHER
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import Enricher, PluginConfig, hookimpl
from odradek.programs.config import load_config
from odradek.testing.host_thread import HostThread
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.hosts import LOOPBACK, ServeProcess, running_host, serving
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

PATIENCE_S = 15
FIRST = """
[subscriptions.all]
metrics = "*"
interval.ms = 100

[subscriptions.old]
metrics = "a"

[plugins.stdout]

[plugins.enrich.static]
region = "north"
"""
SECOND = """
max.connections = 99
max.connections.per.ip = 55

[subscriptions.all]
metrics = "*"
interval.ms = 200

[subscriptions.new]
metrics = "b"

[plugins.stdout]

[plugins.enrich.static]
region = "south"

[plugins.otlp]
endpoint = "http://127.0.0.1:1"
"""
RESTART = "changed keys need a restart; --check tells whether they are right"


def line(serve: ServeProcess, message: str) -> dict[str, Any]:
    """The newest line of a JSON log with this message, once it is there."""

    def found() -> list[dict[str, Any]]:
        return [row for row in map(json.loads, list(serve.errors)) if row["message"] == message]

    return wait_until(found, lambda: f"no line {message!r} in {serve.errors}")[-1]


def push(client: WireClient, instance_id: bytes) -> int:
    """Get the subscription as a known client instance and push; return the error code."""
    subscription = client.subscriptions(instance_id)
    if subscription.error_code:
        return subscription.error_code
    request = PushTelemetryRequest(
        client_instance_id=instance_id,
        subscription_id=subscription.subscription_id,
        metrics=b"\x0a\x00",
    )
    return int(client.send(request).error_code)


def test_a_hangup_reloads_subscriptions_and_tables_and_names_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text(FIRST)
    with serving(tmp_path / "data", "--config", str(file), "--log-format", "json") as serve:
        host, _, port = serve.bootstrap.partition(":")
        with WireClient((host, int(port))) as client:
            client.introduce()
            instance_id = client.subscriptions().client_instance_id
            wait_until(lambda: push(client, instance_id) == 0, "no push is accepted")
            before = serve.next_push(lambda row: True)

            file.write_text(SECOND)
            serve.process.send_signal(signal.SIGHUP)
            reloaded = line(serve, "configuration reloaded")
            rest = line(serve, RESTART)
            wait_until(lambda: push(client, instance_id) == 0, "no push is accepted")
            after = serve.next_push(lambda row: True)

            file.write_text("[subscriptions.all]\ninterval.ms = 1\n")
            serve.process.send_signal(signal.SIGHUP)
            refused = line(serve, "configuration not reloaded, the old one stays")
            client.introduce()
        status = serve.terminate()

    assert (before["labels"]["region"], after["labels"]["region"]) == ("north", "south")
    assert after["context"]["client_instance_id"] == before["context"]["client_instance_id"]
    assert reloaded["subscriptions"] == ["all", "new", "old"]
    assert reloaded["plugins"] == ["enrich"]
    assert rest["keys"] == ["max.connections", "max.connections.per.ip", "plugins.otlp.endpoint"]
    assert refused["level"] == "error"
    assert "subscriptions.all.interval.ms" in refused["problem"]
    assert status == 0


def test_a_hangup_without_a_file_is_ignored(tmp_path: Path) -> None:
    with serving(tmp_path, "--log-format", "json") as serve:
        serve.process.send_signal(signal.SIGHUP)
        line(serve, "nothing to reload: the host was started without --config")
        status = serve.terminate()

    assert status == 0


def test_a_host_stops_with_the_terminal_that_it_was_started_in(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-m", "odradek", "serve", "--set", f"listeners={LOOPBACK}"]
    child, terminal = pty.fork()
    if not child:
        with log.open("w") as stderr:
            os.dup2(stderr.fileno(), 2)
        os.execv(command[0], [*command, "--set", f"data.dir={tmp_path / 'data'}"])
    wait_until(lambda: b"odradek ready" in os.read(terminal, 1000), "the host does not start")

    os.close(terminal)

    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert "Traceback" not in log.read_text()


def test_nohup_keeps_a_host_as_it_is(tmp_path: Path) -> None:
    options = ["--set", f"listeners={LOOPBACK}", "--set", f"data.dir={tmp_path}"]
    command = ["nohup", sys.executable, "-m", "odradek", "serve", *options]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    process.terminate()
    _, errors = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0
    assert "reload" not in errors


class Shade:
    """A reloadable enricher."""

    def __init__(self, color: str) -> None:
        self.color = color

    def labels(self, client_instance_id: bytes, context: object) -> dict[str, str]:
        return {"color": self.color}

    def reload(self, replacement: Shade) -> None:
        if replacement.color == "ultraviolet":
            raise ValueError("not a color")
        self.color = replacement.color


class Fixed:
    """An enricher that cannot be reloaded."""

    def labels(self, client_instance_id: bytes, context: object) -> dict[str, str]:
        return {}


class Plugin:
    """Offers a `Shade`, and a `Fixed` if ``fixed`` is true."""

    @hookimpl
    def odradek_enricher(self, config: PluginConfig) -> Enricher | None:
        color = config.choice("color", "red", ["red", "blue", "ultraviolet"])
        return Fixed() if config.boolean("fixed", False) else Shade(color)


@pytest.fixture
def shaded(tmp_path: Path) -> Iterator[HostThread]:
    manager = HostPluginManager()
    manager.add("shade", Plugin(), "shade", "1.0")
    with running_host(tmp_path, "plugins.shade.color=red", plugins=manager) as host:
        yield host


def reloaded(host: HostThread, *settings: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Reload with these settings; return the messages."""
    caplog.set_level(logging.INFO, "odradek.programs.reload")
    base = [f"listeners={LOOPBACK}", f"data.dir={host.host.config.data_dir}"]
    host.call(lambda: host.host.reloader.reload(lambda: load_config(None, [*base, *settings])))
    return [
        f"{record.getMessage()} {vars(record).get('keys', '')}".strip()
        for record in caplog.records
        if record.name == "odradek.programs.reload"
    ]


def color(host: HostThread) -> str:
    (shade,) = host.host.plugins.all[0].offered(ENRICHER)
    assert isinstance(shade, Shade)
    return shade.color


@pytest.mark.parametrize(
    ("settings", "said", "found"),
    [
        (["plugins.shade.color=blue"], ["configuration reloaded"], "blue"),
        (["plugins.shade.color=red"], ["configuration reloaded"], "red"),
        (
            ["plugins.shade.color=blue", "plugins.shade.fixed=true"],
            [
                "configuration reloaded",
                f"{RESTART} ['plugins.shade.color', 'plugins.shade.fixed']",
            ],
            "red",
        ),
        (
            ["plugins.shade.enabled=false"],
            [
                "configuration reloaded",
                f"{RESTART} ['plugins.shade.color', 'plugins.shade.enabled']",
            ],
            "red",
        ),
        (
            ["plugins.shade.color=ultraviolet"],
            [
                "plugin shade cannot take its new table, restart the host",
                "configuration reloaded",
                f"{RESTART} ['plugins.shade.color']",
            ],
            "red",
        ),
        (
            ["plugins.shade.color=blue", "subscriptions.s.interval.ms=1"],
            ["configuration not reloaded, the old one stays"],
            "red",
        ),
        (["plugins.shade.color=green"], ["configuration not reloaded, the old one stays"], "red"),
        (["plugins.nowhere.a=1"], ["configuration not reloaded, the old one stays"], "red"),
    ],
)
def test_a_plugin_takes_a_new_table_whole_or_not_at_all(
    shaded: HostThread, settings: list[str], said: list[str], found: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert reloaded(shaded, *settings, caplog=caplog) == said
    assert color(shaded) == found


def test_what_needs_a_restart_is_said_again_until_the_restart(
    shaded: HostThread, caplog: pytest.LogCaptureFixture
) -> None:
    settings = ["plugins.shade.color=red", "node.id=7"]

    reloaded(shaded, *settings, caplog=caplog)
    said = reloaded(shaded, *settings, caplog=caplog)

    assert (
        said
        == [
            "configuration reloaded",
            f"{RESTART} ['node.id']",
        ]
        * 2
    )


def test_subscriptions_set_over_the_network_stay(
    shaded: HostThread, caplog: pytest.LogCaptureFixture
) -> None:
    host = shaded.host
    shaded.call(lambda: host.metadata.put_resource(16, "from-network", {"metrics": "c"}))
    shaded.call(lambda: host.telemetry.update_subscription("from-network", {"metrics": "c"}))

    for settings in (["subscriptions.a.metrics=x"], ["subscriptions.b.metrics=y"]):
        reloaded(shaded, "plugins.shade.color=red", *settings, caplog=caplog)

    names = shaded.call(lambda: sorted(host.telemetry.subscriptions.by_name))
    assert names == ["b", "from-network"]
    assert shaded.call(lambda: host.metadata.resource_names(16)) == names
