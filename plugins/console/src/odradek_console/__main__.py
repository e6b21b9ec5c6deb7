"""``odradek console`` as a program of its own: the companion of a host."""

from __future__ import annotations

from odradek_console.terminal.console import console

if __name__ == "__main__":
    console(prog_name="odradek console")
