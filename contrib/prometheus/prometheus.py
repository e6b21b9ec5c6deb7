"""Print the path of a Prometheus server, built from the modules in ``go.mod``.

    python -m contrib.prometheus.prometheus     # <cache>/odradek/prometheus/<digest>/prometheus

Go fetches the modules through its proxy and compiles for minutes the first time. Build output goes to
``$ODRADEK_PROMETHEUS_CACHE`` (default ``~/.cache/odradek/prometheus``) and is rebuilt when ``go.mod`` has
changed. If Go or the modules are not available, the exit status is 3, with one line on stderr.
"""

from __future__ import annotations

from pathlib import Path

from contrib.go_program import QUICK, GoProgram, run

FOLDER = Path(__file__).resolve().parent
PACKAGE = "github.com/prometheus/prometheus/cmd/prometheus"
TAGS = "remove_all_sd"
"""Without the service discoveries, which need the modules of every cloud."""


def build(folder: Path, program: Path, package: str = PACKAGE) -> None:
    """Compile it as a module of ours: ``go install`` refuses the ``replace`` lines of Prometheus."""
    run(["go", "build", *QUICK, "-tags", TAGS, "-o", str(program), package], folder, CGO_ENABLED="0")


SOURCES = tuple(FOLDER / name for name in ("go.mod", "go.sum", "tools.go"))
PROMETHEUS = GoProgram(name="prometheus", sources=SOURCES, build=build)

if __name__ == "__main__":
    raise SystemExit(PROMETHEUS.main())
