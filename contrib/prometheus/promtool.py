"""Print the path of promtool, built from the modules in ``go.mod``.

    python -m contrib.prometheus.promtool     # <cache>/odradek/promtool/<digest>/promtool

It tests the rules in this folder. See ``prometheus.py`` for what it needs; it shares most packages with it.
"""

from __future__ import annotations

from pathlib import Path

from contrib.go_program import QUICK, GoProgram, run
from contrib.prometheus.prometheus import SOURCES, TAGS

PACKAGE = "github.com/prometheus/prometheus/cmd/promtool"


def build(folder: Path, program: Path) -> None:
    run(["go", "build", *QUICK, "-tags", TAGS, "-o", str(program), PACKAGE], folder, CGO_ENABLED="0")


PROMTOOL = GoProgram(name="promtool", sources=SOURCES, build=build)

if __name__ == "__main__":
    raise SystemExit(PROMTOOL.main())
