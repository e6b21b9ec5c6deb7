"""Writes ``host/docs/demo.svg``, the picture in README: the last screen of ``odradek demo`` on a terminal.

    python -m contrib.docs.demo_picture     # from the repository's root; takes as long as the demo

The program runs on a pseudo-terminal of its own. Rich converts its last screen.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).parents[2] / "host/docs/demo.svg"
LINES, COLUMNS = 24, 60
COMMAND = ["odradek", "demo", "--seconds", "10"]
CONTROL = re.compile(r"\x1b\[(?:\?25[hl]|\d*[AJK])|\r")
ERASED = re.compile(r"(?:\x1b\[1A\x1b\[2K)+")
"""How a program goes back over its last screen: line by line, upwards."""
FONT_FACES = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


def on_a_terminal(command: list[str]) -> str:
    """Everything that a program writes to a terminal.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its) as process:
        os.close(its)
        written = b""
        while chunk := read(ours):
            written += chunk
    os.close(ours)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, written)
    return written.decode()


def read(terminal: int) -> bytes:
    """The next bytes; none when the program has ended, which Linux reports as an error."""
    try:
        return os.read(terminal, 65_536)
    except OSError:
        return b""


def last_screen(written: str) -> str:
    """The lines that are left on the screen, with their colors."""
    before, *redrawn = ERASED.split(written)
    heading = "".join(before.splitlines(keepends=True)[:1])
    return CONTROL.sub("", heading + redrawn[-1] if redrawn else before).strip("\n")


def picture(screen: str) -> str:
    """The screen as SVG, which needs nothing from elsewhere."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(("$ ", "bold"), " ".join(COMMAND)))
    console.print(Text.from_ansi(screen), soft_wrap=True)
    drawn = console.export_svg(title="odradek demo", theme=MONOKAI, unique_id="demo")
    return FONT_FACES.sub("", drawn).replace("Fira Code, monospace", FONT)


def main() -> None:
    screen = last_screen(on_a_terminal([sys.executable, "-m", *COMMAND]))
    PICTURE.write_text(picture(screen) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
