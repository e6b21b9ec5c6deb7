"""Plugins that are not installed, in the kit, in a program with a host inside, and in ``odradek serve``."""

from __future__ import annotations

import asyncio
import re
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

import odradek
import odradek.testing
from conformance.telemetry_broker import otlp
from odradek.plugin import ConfigError, PluginConfig, RequestContext, hookimpl
from odradek.programs.config import load_config
from odradek.programs.config_check import check
from odradek.testing import RunningHost
from support.hosts import ServeProcess, serving
from support.reference_page import ROOT
from support.wire_client import WireClient

COUNTING = """
from pathlib import Path
from odradek.plugin import hookimpl

class Census:
    def __init__(self, path):
        self.path, self.pushes = path, 0

    def client_receiver(self):
        return self

    def export_metrics(self, context, payload):
        self.pushes += 1

    def close(self):
        self.path.write_text(f"pushes {self.pushes}")

@hookimpl
def odradek_client_telemetry(config):
    return Census(Path(config.text("path", "census.txt")))
"""


class TeamPlugin:
    @hookimpl
    def odradek_enricher(self, config: PluginConfig) -> TeamPlugin:
        self.team = config.text("team") or "nobody"
        return self

    def labels(self, client_instance_id: bytes, context: RequestContext) -> dict[str, str]:
        return {"team": self.team}


@pytest.fixture
def census(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a plugin, which writes where it runs unless it is told a path."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "census.py"
    file.write_text(COUNTING)
    return file


def push(bootstrap: str) -> int:
    """Push once; return the error code."""
    host, _, port = bootstrap.rpartition(":")
    with WireClient((host, int(port)), "me") as client:
        client.introduce()
        return client.push(otlp("org.x"))


def team_of(host: RunningHost) -> object:
    """The label of the newest push."""
    host.telemetry.forget()
    assert push(host.bootstrap) == 0
    (point,) = host.telemetry.wait_for("org.x")
    return point.labels.get("team")


# In the kit


@pytest.mark.parametrize(("plugins", "team"), [([TeamPlugin], "nobody"), ({TeamPlugin: {"team": "a"}}, "a")])
def test_a_plugin_of_the_test_file_runs_in_the_kit(plugins: Any, team: str) -> None:
    with odradek.testing.host(plugins=plugins) as host:
        host.subscribe()
        assert team_of(host) == team

        host.restart()

        assert team_of(host) == team


def test_plugins_of_all_kinds_run_together(census: Path, tmp_path: Path) -> None:
    plugins = {"stdout": {}, TeamPlugin(): {}, str(census): {"path": str(tmp_path / "sum")}}

    with odradek.testing.host(plugins=plugins) as host:
        host.subscribe()
        team_of(host)
        names = [plugin.name for plugin in host.host.plugins.all]

    assert names == ["census", "stdout", "team"]
    assert (tmp_path / "sum").read_text() == "pushes 1"


def test_the_kit_refuses_what_is_not_there(tmp_path: Path) -> None:
    threads = threading.active_count()

    with pytest.raises(ConfigError, match=r"plugins\.absent: no such plugin is installed; .*stdout"):
        odradek.testing.host(plugins=["absent"]).__enter__()
    with pytest.raises(ConfigError, match=r"absent\.py: cannot be read: No such file or directory"):
        odradek.testing.host(plugins=[tmp_path / "absent.py"]).__enter__()
    with pytest.raises(ConfigError, match=r"plugins\.team\.teem: unknown key \(did you mean team\?\)"):
        odradek.testing.host(plugins={TeamPlugin: {"teem": "a"}}).__enter__()

    assert threading.active_count() == threads


def test_the_plugin_of_the_readme_runs(tmp_path: Path) -> None:
    file = tmp_path / "team.py"
    (source,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    file.write_text(textwrap.dedent(source))

    with odradek.testing.host(plugins=[file]) as host:
        host.subscribe()
        assert team_of(host) == "me"


# In a program


def settings(folder: Path) -> dict[str, object]:
    """A host on a free port."""
    subscriptions = {"all": {"metrics": "*"}}
    return {"data.dir": folder, "listeners": "PLAINTEXT://127.0.0.1:0", "subscriptions": subscriptions}


async def pushed(folder: Path, **arguments: Any) -> list[str]:
    """Run a host and push once."""
    async with odradek.run(**arguments) as host:
        assert host.data_dir == folder
        assert host.listeners == [f"PLAINTEXT://{host.bootstrap}"]
        assert await asyncio.to_thread(push, host.bootstrap) == 0
        return [plugin.name for plugin in host.host.plugins.all if plugin.state == "active"]


def test_a_host_runs_in_a_program(census: Path, tmp_path: Path) -> None:
    plugins = {TeamPlugin: {}, census: {"path": str(tmp_path / "sum")}}

    names = asyncio.run(pushed(tmp_path / "data", config=settings(tmp_path / "data"), plugins=plugins))

    assert {"team", "census"} <= set(names)
    assert (tmp_path / "sum").read_text() == "pushes 1"


def test_a_host_in_a_program_may_have_a_file(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    keys = {"data.dir": str(tmp_path / "data"), "listeners": "PLAINTEXT://127.0.0.1:0"}
    file.write_text("\n".join(f"{key} = '{value}'" for key, value in keys.items()))

    names = asyncio.run(pushed(tmp_path / "data", config=str(file), plugins=[TeamPlugin]))

    assert "team" in names


def test_a_host_in_a_program_ends_with_the_block(tmp_path: Path) -> None:
    async def main() -> None:
        tasks = asyncio.all_tasks()
        for _ in range(2):  # the port and the data are free again
            with pytest.raises(LookupError, match="of the program"):
                async with odradek.run(settings(tmp_path / "data")):
                    raise LookupError("of the program")
        assert asyncio.all_tasks() == tasks

    threads = threading.active_count()
    asyncio.run(main())

    assert threading.active_count() == threads


def test_a_host_in_a_program_tells_that_it_can_do_nothing_any_more(tmp_path: Path) -> None:
    async def main() -> str:
        async with odradek.run(settings(tmp_path / "data")) as host:
            host.host.ground.failed("the last disk is gone")
            host.host.ground.failed("and again")
            return await host.failed()

    assert asyncio.run(main()) == "the last disk is gone"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"data.dri": "x"}, "data.dri: unknown key (did you mean data.dir?)"),
        ({"gateway": {"upstream": "a:1"}}, "gateway.upstream: is a key of odradek gateway, which"),
        ({"plugins": {"absent": {}}}, "plugins.absent: no such plugin is installed"),
        ("absent.toml", "absent.toml: cannot be read: No such file or directory"),
    ],
)
def test_a_host_in_a_program_refuses_what_serve_refuses(config: Any, told: str, tmp_path: Path) -> None:
    folder = {"data.dir": tmp_path / "data"} if isinstance(config, dict) else {}

    async def main() -> None:
        async with odradek.run({**config, **folder} if folder else config):
            raise AssertionError("it runs")

    with pytest.raises(ConfigError) as caught:
        asyncio.run(main())

    assert told in str(caught.value)


# In a process


def test_a_check_calls_the_hook_of_a_file(census: Path) -> None:
    assert "plugin census is active" in check(load_config(plugins=[str(census)]))
    with pytest.raises(ConfigError, match=r"plugins\.census\.pth: unknown key \(did you mean path\?\)"):
        check(load_config(overrides=["plugins.census.pth=x"], plugins=[str(census)]))


@pytest.mark.ci
def test_a_file_runs_with_one_command(census: Path, tmp_path: Path) -> None:
    table = ("--set", f"plugins.census.path={tmp_path / 'sum'}", "--set", "subscriptions.all.metrics=*")

    with serving(tmp_path / "data", "--plugin", str(census), *table) as serve:
        assert push(serve.bootstrap) == 0
        assert serve.terminate() == 0

    assert (tmp_path / "sum").read_text() == "pushes 1"
    assert any("active=" in line and "census" in line for line in serve.errors)
    tested = ServeProcess("--ephemeral", "--plugin", str(census), *table)
    assert push(tested.bootstrap) == 0
    assert tested.terminate() == 0
