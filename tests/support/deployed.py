"""Programs as systemd and container engines start them: by the command line of a file, without rights."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from contrib.capture.ports import free_port

PROGRAM = Path(sys.executable).with_name("odradek")
NO_RIGHTS = ("setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")


def without_rights(command: Sequence[str | Path]) -> list[str]:
    """The command line of a program that cannot gain rights, and has no capabilities if root starts it."""
    if shutil.which("setpriv") is None:
        return [str(each) for each in command]
    return [*NO_RIGHTS[: None if os.geteuid() == 0 else 2], *map(str, command)]


def moved(text: str, folders: Mapping[str, Path], ports: Mapping[str, int]) -> str:
    """A text with folders and ports of this machine."""
    for inside, outside in folders.items():
        text = text.replace(inside, str(outside))
    return re.sub(r"(?<=[:= ])\d{4}\b", lambda port: str(ports.get(port[0], port[0])), text)


def ports_of(text: str) -> dict[str, int]:
    """A free port for each port that a configuration listens on."""
    return {port: free_port() for port in re.findall(r"(?<=0\.0\.0\.0:)\d+|(?<=port\.start\" = )\d+", text)}
