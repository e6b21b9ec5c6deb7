"""``contrib/systemd``: the commands accept their lines, and systemd the units."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from support.command_lines import parsed
from support.reference_page import ROOT

FOLDER = ROOT / "contrib/systemd"
UNITS = sorted(path.name for path in FOLDER.glob("*.service"))
PROGRAM = "/opt/odradek/bin/odradek"
HARDENED = {
    "DynamicUser": "yes",
    "NoNewPrivileges": "yes",
    "ProtectSystem": "strict",
    "CapabilityBoundingSet": "",
    "SystemCallFilter": "@system-service",
    "Restart": "on-failure",
}
EXPOSURE = "20"
"""The most tenths of what `systemd-analyze security` may find fault with; a service as it comes has 96."""


def directives(unit: str) -> dict[str, str]:
    """The keys and values of a unit. No key is there twice."""
    lines = [
        line.partition("=")
        for line in (FOLDER / unit).read_text(encoding="utf-8").splitlines()
        if line and not line.startswith(("#", "["))
    ]
    assert len({key for key, _, _ in lines}) == len(lines)
    return {key: value for key, _, value in lines}


@pytest.mark.parametrize("unit", UNITS)
def test_the_command_accepts_its_line(unit: str) -> None:
    lines = [value for key, value in directives(unit).items() if key in ("ExecStart", "ExecStartPre")]
    state = directives(unit).get("StateDirectory")

    split = [shlex.split(line.replace("${BOOTSTRAP_SERVER}", "kafka:9092")) for line in lines]
    commands = [(line[0], *parsed(line[1:])) for line in split]

    for program, command, options in commands:
        assert program == PROGRAM
        assert command == (unit.removesuffix(".service").partition("-")[2] or "serve")
        assert options["config_file"].parent == Path("/etc/odradek")
        assert options["overrides"] == (() if state is None else (f"data.dir=/var/lib/{state}",))


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_has_few_rights(unit: str) -> None:
    found = directives(unit)

    assert HARDENED.items() <= found.items()


def test_the_page_lists_the_units_and_their_files() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")

    listed = re.findall(r"^\| `([\w.-]+)` \|", text, re.MULTILINE)

    assert sorted(listed) == UNITS
    for unit in UNITS:
        for path in re.findall(r"/etc/odradek/[\w.]+", (FOLDER / unit).read_text(encoding="utf-8")):
            assert f"`{path}`" in text


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for unit in UNITS:
        text = (FOLDER / unit).read_text(encoding="utf-8")
        (tmp_path / unit).write_text(text.replace(PROGRAM, "/bin/true"), encoding="utf-8")
    files = [str(tmp_path / unit) for unit in UNITS]
    for command in (["verify", "--man=no"], ["security", "--offline=true", f"--threshold={EXPOSURE}"]):
        done = subprocess.run(
            ["systemd-analyze", *command, *files], capture_output=True, text=True, check=False, timeout=60
        )

        assert done.returncode == 0, done.stdout + done.stderr
