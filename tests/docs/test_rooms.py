"""The pages for those who change the code: rooms and floors of ``host/README.md``, where a change belongs."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from support.reference_page import ROOT, page

HOST = ROOT / "host/src/odradek"
ROW = re.compile(r"\| (?P<floor>\w+) \| `(?P<room>\w+)/` \| .+ \| (?P<start>.+) \|")
CHANGE = re.compile(r"\| (?P<change>[^|]+) \| `(?P<file>[^`]+)`[^|]* \| [^|]+ \|")
NAME = re.compile(r"`([^`]+)`")
ROOMS = [
    match
    for line in (ROOT / "host/README.md").read_text(encoding="utf-8").splitlines()
    if (match := ROW.match(line))
]


def test_rooms_and_floors_are_those_of_the_import_contract() -> None:
    tools: Any = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    (contract,) = (each for each in tools["importlinter"]["contracts"] if each["type"] == "layers")
    floors: dict[str, set[str]] = {}
    for row in ROOMS:
        floors.setdefault(row["floor"], set()).add(row["room"])

    assert list(floors.values()) == [set(layer.split(" | ")) for layer in contract["layers"]]
    assert list(floors) == sorted(floors, reverse=True)
    assert sorted(row["room"] for row in ROOMS) == sorted(
        each.parent.name for each in HOST.glob("*/__init__.py")
    )


def test_the_files_to_start_with_exist() -> None:
    missing = [
        f"{row['room']}/{name}"
        for row in ROOMS
        for name in NAME.findall(row["start"])
        if not any((HOST / row["room"]).glob(name.rstrip("/").replace("<api>", "*")))
    ]

    assert missing == []


def test_each_example_of_a_change_names_one_file_that_exists() -> None:
    lines = page("explanation/where-does-my-change-belong.md").splitlines()
    table = [line for line in lines if line.startswith("| ")][1:]
    found = [match for line in table if (match := CHANGE.fullmatch(line))]

    assert len(found) == len(table) >= 10
    assert [match["file"] for match in found if not (ROOT / match["file"]).is_file()] == []
