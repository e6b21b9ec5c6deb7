"""``odradek demo --console`` as a user runs it."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import click
import pytest

from odradek.cli import main
from odradek.demo.console import DemoConsole
from support.demo_console import CLIENTS, FINDING, PATIENCE_S, demo
from support.waiting import wait_until

pytestmark = pytest.mark.ci

pytest.importorskip("confluent_kafka")
if "console" not in main.installed_commands():
    pytest.skip("odradek-console is not installed", allow_module_level=True)

PAGES = ("/", "/subscriptions", "/quotas", "/delivery", "/host")


def test_the_console_shows_the_clients_and_ends_with_the_demo() -> None:
    with demo() as running:
        wait_until(lambda: sorted(running.findings()) == CLIENTS, running.findings, PATIENCE_S)
        running.process.send_signal(signal.SIGTERM)
        said = running.process.communicate(timeout=PATIENCE_S)[0]

        assert running.process.returncode == 0, said
        assert running.is_gone()
    assert " labeled pushes of 3 client instances" in said


@pytest.mark.slow  # the finding needs ten seconds of a slow application
def test_with_few_rights_it_shows_all_pages_and_it_ends_when_the_demo_is_killed() -> None:
    with demo("--secure") as running:
        running.wait_for_the_finding()
        pages = [running.get(path) for path in PAGES]
        running.process.kill()
        wait_until(running.is_gone, "the console ends", PATIENCE_S)

    assert FINDING.encode() in pages[0]
    assert b"otlp" in pages[3]


def test_without_the_console_the_demo_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "installed_commands", dict)

    assert main.run(["demo", "--console"]) == 1
    assert "install the extra odradek[console]" in capsys.readouterr().err


def test_a_console_that_does_not_start_ends_the_demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = (sys.executable, "-c", "raise SystemExit('out of order')")
    monkeypatch.setattr(DemoConsole, "command", lambda *_: broken)

    async def start() -> None:
        async with DemoConsole(tmp_path, None).running("127.0.0.1:1"):
            pass

    with pytest.raises(click.ClickException, match="odradek console does not start: out of order"):
        asyncio.run(start())
