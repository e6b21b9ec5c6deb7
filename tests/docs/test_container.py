"""``contrib/container`` and the page about it: what the image starts, and with an engine the image itself."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from odradek import __version__
from support.control import Control
from support.hosts import ServeProcess
from support.reader import Reader
from support.reference_page import ROOT, page

PAGE = "howto/test-in-a-container.md"
FILE = ROOT / "contrib/container/Containerfile"
IMAGE = "odradek-ephemeral"
TOKEN = "secret"
ENTRYPOINT = re.compile(r"^ENTRYPOINT (\[.*?\])$", re.MULTILINE | re.DOTALL)
BUILD = re.compile(r"^(?:#   )?(docker build .*)$", re.MULTILINE)
PORTS = ("9092", "9093")


def entrypoint() -> list[str]:
    """The command of the image for tests."""
    command: list[str] = json.loads(
        ENTRYPOINT.findall(FILE.read_text(encoding="utf-8"))[-1].replace("\\\n", "")
    )
    return command


def test_the_image_starts_a_host_that_is_controlled_with_the_token() -> None:
    program, command, *options = entrypoint()
    assert (program, command) == ("odradek", "serve")
    free = [
        re.sub(r":(9092|9093)$", ":0", each) if each.partition("=")[0] != "advertised.listeners" else each
        for each in options
    ]

    serve = ServeProcess(*free, env={"ODRADEK_CONTROL_TOKEN": TOKEN})

    listed = Control(serve, TOKEN).send("", method="GET")[1]
    assert serve.terminate() == 0
    assert listed["bootstrap"] == "localhost:9092"


def test_the_image_exposes_the_ports_of_the_page() -> None:
    listening = re.findall(r"0\.0\.0\.0:(\d+)", " ".join(entrypoint()))
    (exposed,) = re.findall(r"^EXPOSE (.+)$", FILE.read_text(encoding="utf-8"), re.MULTILINE)

    assert sorted(listening) == sorted(exposed.split()) == sorted(PORTS)
    for port in PORTS:
        assert f"-p {port}:{port}" in page(PAGE)


def test_the_commands_build_stages_that_exist() -> None:
    texts = [page(PAGE), *(path.read_text(encoding="utf-8") for path in (FILE, FILE.with_name("README.md")))]
    stages = set(re.findall(r" AS (\w+)$", texts[1], re.MULTILINE))

    commands = [command for text in texts for command in BUILD.findall(text)]

    assert len(commands) == 7
    for command in commands:
        (target,) = re.findall(r"--target (\w+)", command)
        assert target in stages
        assert f"-f {FILE.relative_to(ROOT)} " in command


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(700)
@pytest.mark.xdist_group("wheels")
def test_the_image_is_built_from_the_wheels_of_a_version(
    installed_from_wheels: Reader, tmp_path: Path
) -> None:
    """Its stage `build`, run in folders of this machine: no engine is needed for it."""
    stage = FILE.read_text(encoding="utf-8").partition(" AS build\n")[2].partition("\nFROM ")[0]
    wheels = Path(installed_from_wheels.environment["HOME"]) / "odradek-wheels"
    variables = dict(re.findall(r"(PIP_\w+)=(\S+)", stage)) | {"VERSION": __version__}
    (command,) = re.findall(r"^RUN (.*)", stage, re.MULTILINE | re.DOTALL)
    for inside, outside in {"/opt": tmp_path / "opt", "/tmp": tmp_path / "tmp", "/src": wheels}.items():
        command = re.sub(rf"(?<![\w.]){inside}\b", str(outside), command)
        variables = {name: value.replace(inside, str(outside)) for name, value in variables.items()}

    done = subprocess.run(["sh", "-c", command], env=os.environ | variables, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    program = tmp_path / "opt/odradek/bin/odradek"
    said = subprocess.run([program, "plugins"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert [name for name in ("console", "enrich", "kafka", "otlp", "prometheus") if name not in said] == []


@pytest.mark.slow
@pytest.mark.timeout(700)
def test_the_page_works_with_a_container_engine(tmp_path: Path) -> None:
    build_image()
    pytest.importorskip("testcontainers", reason="testcontainers is not installed")
    (block,) = re.findall(r"^```python\n(.*?)^```$", page(PAGE), re.MULTILINE | re.DOTALL)
    (tmp_path / "test_orders.py").write_text(block, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider"]

    done = subprocess.run([*command, str(tmp_path)], capture_output=True, text=True, timeout=200, check=False)

    assert "1 passed" in done.stdout, done.stdout + done.stderr


def build_image() -> None:
    """Build the image of the page, or skip the test if this machine cannot."""
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    if docker("version").returncode != 0:
        pytest.skip("no container engine answers to `docker version`")
    (command,) = BUILD.findall(page(PAGE))
    options = command.split()[1:]
    base = os.environ.get("ODRADEK_CONTAINER_BASE")
    if base is not None:
        options[1:1] = ["--build-arg", f"BASE={base}"]
    else:
        (base,) = re.findall(r"^ARG BASE=(\S+)$", FILE.read_text(encoding="utf-8"), re.MULTILINE)
    if docker("image", "inspect", base).returncode != 0 and docker("pull", base).returncode != 0:
        pytest.skip(f"no registry offers the base image {base}")
    done = docker(*options)
    assert done.returncode == 0, done.stdout + done.stderr


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["docker", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=400, check=False
    )
