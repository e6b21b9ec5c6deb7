"""The tutorial "your first plugin", step by step, in a virtual environment made as "how to install" says."""

from __future__ import annotations

import signal
import subprocess

import pytest

from support.reader import Reader
from support.reference_page import blocks

PAGE = "tutorial/first-plugin.md"
FILES = {"toml": "pyproject.toml", "odradek_census": "odradek_census.py", "test_census": "test_census.py"}


def code(language: str) -> list[str]:
    return [text for found, text in blocks(PAGE) if found == language]


def commands() -> list[list[str]]:
    """The lines of each shell block."""
    return [text.splitlines() for text in code("sh")]


def printed() -> list[str]:
    """The expected output on the page, block by block."""
    return [text.strip() for text in code("")]


def between(text: str, start: str, end: str) -> str:
    return text[text.index(start) : text.index(end)]


@pytest.mark.slow
@pytest.mark.timeout(400)  # an installation alone may take 300 s
@pytest.mark.xdist_group("wheels")
def test_every_command_works_as_on_the_page(installed_from_wheels: Reader) -> None:
    (project,) = code("toml")
    plugin, contract, kept, hook, line = code("python")
    setup, run, first, second, third, install, verify, serve = commands()
    failing, why, still_failing, passing, listed, verdict = printed()
    reader = installed_from_wheels

    for command in setup:
        assert reader.run(command).strip() == ""
    reader.save(FILES["odradek_census"], plugin)
    assert served(reader, *run)
    reader.save(FILES["test_census"], contract)
    shown = [reader.run(command) for command in first][-1]
    assert failing in shown
    assert all(row in shown for row in why.splitlines()), shown

    reader.replace(FILES["odradek_census"], between(plugin, "class Census", "\n\n@hookimpl"), kept)
    shown = reader.run(*second)
    assert still_failing in shown
    assert "1 failed" in shown

    reader.replace(FILES["odradek_census"], plugin[plugin.index("@hookimpl") :], hook)
    reader.replace(FILES["test_census"], contract.splitlines(keepends=True)[-1], line)
    shown = reader.run(*third)
    assert passing in shown, shown

    reader.save(FILES["toml"], project)
    shown = [reader.run(command) for command in install][-1]
    assert shown.strip() == listed
    shown = reader.run(*verify)
    assert verdict in shown
    assert served(reader, *serve)
    assert (reader.folder / "census.txt").exists()  # the plugin writes when the host stops


def served(reader: Reader, command: str) -> bool:
    """The plugin starts with the line."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command} --set listeners=PLAINTEXT://127.0.0.1:0"],
        cwd=reader.folder,
        env=reader.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as serving:
        assert serving.stdout is not None
        ready = serving.stdout.readline()
        serving.send_signal(signal.SIGINT)
        serving.wait(30)
    return ready.startswith("odradek ready")
