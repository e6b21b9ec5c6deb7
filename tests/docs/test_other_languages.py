"""The helpers for tests in other languages run as they stand in ``contrib/testing``, with their tests."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from integration.conftest import GO_PROGRAM, build_folder, built
from integration.java.jvm import OPTIONS, built_classpath
from support.hosts import ServeProcess
from support.reference_page import ROOT, page

PAGE = "howto/test-in-other-languages.md"
HELPERS = ROOT / "contrib/testing"
KAFKAJS = "kafkajs@2.2.4"
TIMEOUT_S = 100


def copied(language: str, folder: Path) -> list[Path]:
    """Copy the helper of a language and its test into a folder."""
    paths = [Path(shutil.copy(each, folder)) for each in (HELPERS / language).iterdir()]
    assert len(paths) == 2
    return paths


def run(*command: str | Path, cwd: Path) -> str:
    """Run a program that finds this tree's ``odradek`` on its path, and return what it prints."""
    programs = cwd / "bin"
    programs.mkdir()
    tree = os.pathsep.join(entry for entry in sys.path if entry)
    (programs / "odradek").write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(tree)} exec {shlex.quote(sys.executable)} -m odradek "$@"\n'
    )
    (programs / "odradek").chmod(0o755)
    environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_commands_print_what_the_page_shows() -> None:
    shown = re.findall(r"^\$ (curl .*)\n(.*)$", page(PAGE), re.MULTILINE)
    assert len(shown) == 3
    serve = ServeProcess("--ephemeral")
    url = serve.ready.rpartition("control=")[2]
    try:
        for command, expected in shown:
            here = shlex.split(re.sub(r"http://127.0.0.1:\d+", url, command))
            found = subprocess.run(here, capture_output=True, text=True, timeout=30, check=True).stdout
            assert found.startswith(expected.partition("\\n...")[0].rstrip())
    finally:
        serve.terminate()


@pytest.mark.java
def test_java(tmp_path: Path) -> None:
    classpath = built_classpath()
    built("javac", "-cp", classpath, *map(str, copied("java", tmp_path)))

    out = run("java", *OPTIONS, "-cp", f"{classpath}:{tmp_path}", "OrdersTest", cwd=tmp_path)

    assert out == "passed\n"


@pytest.mark.slow
def test_go(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    copied("go", tmp_path)
    module = (GO_PROGRAM / "go.mod").read_text()
    (tmp_path / "go.mod").write_text(module)
    shutil.copy(GO_PROGRAM / "go.sum", tmp_path)
    built("go", "test", "-c", "-mod=mod", "-o", str(tmp_path / "orders.test"), cwd=tmp_path)

    out = run(tmp_path / "orders.test", "-test.v", cwd=tmp_path)

    assert "--- PASS: TestItTriesAgain" in out


@pytest.mark.slow
def test_node(tmp_path: Path) -> None:
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    copied("node", tmp_path)
    with build_folder(KAFKAJS.replace("@", "-")) as folder:
        if not (folder / "node_modules" / "kafkajs").exists():
            built("npm", "install", "--no-save", "--no-package-lock", KAFKAJS, cwd=folder)
    (tmp_path / "node_modules").symlink_to(folder / "node_modules")

    out = run("node", "--test", "orders.test.mjs", cwd=tmp_path)

    assert re.search(r"^# pass 1$", out, re.MULTILINE), out
