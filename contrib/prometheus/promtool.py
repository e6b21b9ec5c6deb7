"""Print the path of promtool, built from the modules in ``go.mod``.

    python -m contrib.prometheus.promtool     # <cache>/odradek/promtool/<digest>/promtool

It tests the rules in this folder. See ``prometheus.py`` for what it needs; it shares most packages with it.
"""

from __future__ import annotations

from functools import partial

from contrib.go_program import GoProgram
from contrib.prometheus.prometheus import SOURCES, build

PACKAGE = "github.com/prometheus/prometheus/cmd/promtool"
PROMTOOL = GoProgram(name="promtool", sources=SOURCES, build=partial(build, package=PACKAGE))

if __name__ == "__main__":
    raise SystemExit(PROMTOOL.main())
