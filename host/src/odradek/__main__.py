"""``python -m odradek``."""

from __future__ import annotations

from odradek.cli.main import main

if __name__ == "__main__":
    main()
