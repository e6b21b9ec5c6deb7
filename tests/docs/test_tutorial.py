"""The tutorial, step by step, against ``odradek serve``."""

from __future__ import annotations

import contextlib
import json
import queue
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from odradek.hosting import stdout_receiver
from odradek.hosting.plugin_manager import HostPluginManager
from support.hosts import ServeProcess, running_host, serving
from support.reference_page import blocks, page

PAGE = "tutorial/first-push.md"
ADDRESS = "localhost:9092"
INTERVAL_MS, QUICK_INTERVAL_MS = "5000", "200"
SECOND, QUICK_SECOND = "time.sleep(1)", "time.sleep(0.1)"


def commands() -> list[tuple[str, str]]:
    """Each ``odradek client-metrics`` of the page and its output there."""
    found = blocks(PAGE)
    return [
        (text.replace("\\\n", " "), found[index + 1][1])
        for index, (language, text) in enumerate(found)
        if language == "sh" and text.startswith("odradek client-metrics")
    ]


def only(language: str) -> str:
    """The only block in a language."""
    (text,) = [text for found, text in blocks(PAGE) if found == language]
    return text


def run(arguments: list[str]) -> str:
    """The output of a program of the tutorial."""
    finished = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def subscribe(serve: ServeProcess) -> None:
    """Step 2, with a shorter interval."""
    assert len(commands()) == 2
    for command, printed in commands():
        line = command.replace(ADDRESS, serve.bootstrap).replace(INTERVAL_MS, QUICK_INTERVAL_MS)
        _, *arguments = shlex.split(line)
        assert run(["-m", "odradek", *arguments]) == printed.replace(INTERVAL_MS, QUICK_INTERVAL_MS)


def produce(serve: ServeProcess, folder: Path) -> None:
    """Step 3, in less time."""
    program = folder / "producer.py"
    text = only("python").replace(ADDRESS, serve.bootstrap).replace(SECOND, QUICK_SECOND)
    program.write_text(text, encoding="utf-8")
    run([str(program)])


def instance_of(row: dict[str, Any]) -> str:
    """The client instance of a push."""
    return str(row["context"]["client_instance_id"])


def unlike(shown: dict[str, Any], real: dict[str, Any]) -> list[str]:
    """Keys of the page's line that the real one lacks, or has with another type."""
    return [key for key, value in shown.items() if type(real.get(key)) is not type(value)]


def test_each_step_prints_the_output_in_the_tutorial(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    shown = json.loads(only("json"))

    rows: list[dict[str, Any]] = []

    def says_goodbye(row: dict[str, Any]) -> bool:
        rows.append(row)
        return bool(row["context"]["terminating"])

    with serving(tmp_path / "data", "--plugin", "stdout", "--set", "telemetry.linger.ms=0") as serve:
        subscribe(serve)
        last = None
        while last is None:  # librdkafka says no goodbye if it is closed while a push waits for its answer
            produce(serve, tmp_path)
            with contextlib.suppress(queue.Empty):
                last = serve.next_push(says_goodbye, 3)
        status = serve.terminate()
    first = next(row for row in rows if instance_of(row) == instance_of(last))

    assert first.keys() == shown.keys()
    assert first["context"].keys() == shown["context"].keys()
    assert unlike(shown["context"], first["context"]) == []
    assert unlike(shown["labels"], first["labels"]) == []
    assert set(shown["names"]) < set(first["names"])
    assert first is not last
    assert status == 0


def test_the_ready_line_is_the_tutorials(tmp_path: Path) -> None:
    (shown,) = [text.strip() for _, text in blocks(PAGE) if text.startswith("odradek ready")]

    with serving(tmp_path / "data") as serve:
        port = serve.bootstrap.rpartition(":")[2]
        real = serve.ready.replace(port, "9092").replace(str(tmp_path / "data"), "odradek-data")

    assert real == shown


@pytest.mark.parametrize(
    ("durability", "plugin", "offered"),
    [("log", False, True), ("memory", False, False), ("memory", True, True)],
)
def test_the_telemetry_apis_are_offered_as_the_tutorial_says(
    tmp_path: Path, durability: str, plugin: bool, offered: bool
) -> None:
    plugins = HostPluginManager()
    plugins.add("stdout", stdout_receiver, "odradek", "1", builtin=True)
    overrides = [f"telemetry.durability={durability}", f"plugins.stdout.enabled={plugin}".lower()]
    said = " ".join(page(PAGE).split())

    with running_host(tmp_path, *overrides, plugins=plugins) as thread:
        assert thread.host.broker.wants_telemetry is offered

    assert "Without it the host would still accept pushes" in said
    assert 'Only with `telemetry.durability = "memory"` and no plugin that takes pushes' in said
