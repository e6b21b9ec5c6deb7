"""Runs every block of a page in order, in a fresh directory, with the sources and tools of the tests.

Comments in a page, which readers do not see, say what the blocks do not:

* ``<!-- file: NAME -->``: the next block is saved under this name.
* ``<!-- not run: REASON -->``: the next block needs what a test does not have, or is only a part of a file.
* ``<!-- page not run: REASON -->``: the same for all blocks of the page.
* ``<!-- run by: TEST -->``: this test runs the page.
* ``<!-- needs: spark -->``: its blocks need Java and Spark.
* ``<!-- first: COMMANDS -->``: what the reader has done before, such as another page; ``stop`` ends the host.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from contrib.capture.ports import free_ports

from support.reference_page import ROOT, page
from support.waiting import wait_until

PART = re.compile(
    r"^<!-- (?P<mark>file|not run|page not run|run by|needs|first): (?P<note>.*?) -->$"
    r"|^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMANDS, SHOWN = ("sh", "python"), ("", "text")
"""Languages of blocks that are run, and of those that show output."""
INSTALLS = re.compile(r"(python3? -m )?pip install ")
SERVES = re.compile(r"odradek serve\b(?!.*--(check|help)\b)")
PORTS = ("9092", "9093", "9094")
COMMAND_LIMIT_S, START_LIMIT_S, STOP_LIMIT_S = 600, 120, 60
RETRIES_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A fenced block of a page, or the commands of a ``first``."""

    language: str
    text: str
    line: int
    """The line of the page on which it starts."""
    file: str = ""
    not_run: str = ""
    """The reason why it is not run; empty if it is."""

    @property
    def is_clear(self) -> bool:
        """Whether the block, or a comment above it, says what to do with it."""
        return bool(self.file or self.not_run) or self.language in COMMANDS + SHOWN


def run_by(name: str) -> str:
    """The path of the test that runs the page; empty if it has no test of its own."""
    return next((found["note"] for found in PART.finditer(page(name)) if found["mark"] == "run by"), "")


def needs_spark(name: str) -> bool:
    return any(found["mark"] == "needs" and found["note"] == "spark" for found in PART.finditer(page(name)))


def blocks_of(name: str) -> list[Block]:
    """The blocks of a page, in order, each with its comments."""
    text = page(name)
    whole = next((each["note"] for each in PART.finditer(text) if each["mark"] == "page not run"), "")
    found: list[Block] = []
    marks: dict[str, str] = {}
    for part in PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if part["mark"] == "first":
            found.append(Block(language="sh", text=part["note"], line=line, not_run=whole))
        elif part["mark"] is not None:
            marks[part["mark"]] = part["note"]
        else:
            reason = whole or marks.get("not run", "")
            file = marks.get("file", "")
            found.append(
                Block(language=part["language"], text=part["text"], line=line, file=file, not_run=reason)
            )
            marks = {}
    return found


class PageFollower:
    """Follows a page in a folder. Hosts listen on free ports instead of those on the page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "page"
        self.folder.mkdir()
        tools = folder / "tools"
        tools.mkdir()
        program = tools / "odradek"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m odradek "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        self.ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
        path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "CHECKOUT": str(ROOT), "COLUMNS": "80"}
        self.variables = folder / "variables"
        self.variables.touch()
        self.serving: subprocess.Popen[str] | None = None
        self.log = folder / "serve.log"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def follow(self, block: Block) -> None:
        """Save a file, or run commands. A failing command fails the test with its output."""
        text = self.here(block.text)
        if block.file:
            (self.folder / block.file).write_text(text, encoding="utf-8")
        elif block.language == "python":
            (self.folder / "block.py").write_text(text, encoding="utf-8")
            self.run("python block.py")
        elif block.language == "sh":
            for command in commands(text):
                if command == "stop":
                    self.stop()
                elif SERVES.match(command):
                    self.serve(command)
                elif not INSTALLS.match(command):
                    self.run(command)

    def here(self, text: str) -> str:
        """The text with the ports of this reader."""
        return re.sub("|".join(self.ports), lambda port: self.ports[port[0]], text)

    def run(self, command: str) -> None:
        """Run a command, and again for a while if it fails: it may wait for the host's work.

        The variable ``at`` stays for the next command.
        """
        end_s = time.monotonic() + RETRIES_S
        script = f'set -a; . "{self.variables}"; set +a; {command}\nstatus=$?\n'
        script += f'declare -p at 2> /dev/null > "{self.variables}"; exit $status'
        while True:
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=COMMAND_LIMIT_S,
                check=False,
            )
            if done.returncode == 0:
                return
            assert time.monotonic() < end_s, f"{command}\n{done.stdout}{done.stderr}\n{self.log_text()}"
            time.sleep(0.5)

    def serve(self, command: str) -> None:
        """Run a host in the background, after the one before it has stopped, and wait until it listens."""
        self.stop()
        if not self.configures_listeners(command):
            listener = f"--set listeners=PLAINTEXT://127.0.0.1:{self.ports['9092']}"
            command = command.replace("odradek serve", f"odradek serve {listener}", 1)
        with self.log.open("w", encoding="utf-8") as log:
            self.serving = subprocess.Popen(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        wait_until(self.listens, lambda: f"{command}\n{self.log_text()}", START_LIMIT_S)

    def configures_listeners(self, command: str) -> bool:
        named = re.search(r"--config (\S+)", command)
        return named is not None and "listeners" in (self.folder / named[1]).read_text(encoding="utf-8")

    def listens(self) -> bool:
        assert self.serving is not None
        assert self.serving.poll() is None, self.log_text()
        for port in self.ports.values():
            with socket.socket() as connection:
                if connection.connect_ex(("127.0.0.1", int(port))) == 0:
                    return True
        return False

    def stop(self) -> None:
        """Stop the host as Ctrl-C does, with all programs of its pipeline."""
        serving, self.serving = self.serving, None
        if serving is None:
            return
        assert serving.poll() is None, f"the host has ended\n{self.log_text()}"
        os.killpg(serving.pid, signal.SIGINT)
        try:
            serving.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(serving.pid, signal.SIGKILL)
            raise

    def log_text(self) -> str:
        return self.log.read_text(encoding="utf-8") if self.log.exists() else ""


def commands(text: str) -> Iterator[str]:
    """The command lines of a block; a line may continue after a backslash."""
    return (line for line in text.replace("\\\n", " ").splitlines() if line.strip())
