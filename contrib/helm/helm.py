"""Print the path of Helm, built from the modules in ``go.mod``.

    python -m contrib.helm.helm     # <cache>/odradek/helm/<digest>/helm

Go fetches the modules through its proxy and compiles for a minute or two the first time. Build output goes to
``$ODRADEK_HELM_CACHE`` (default ``~/.cache/odradek/helm``) and is rebuilt when ``go.mod`` has changed. If Go
or the modules are not available, the exit status is 3, with one line on stderr.
"""

from __future__ import annotations

from pathlib import Path

from contrib.go_program import QUICK, GoProgram, run

FOLDER = Path(__file__).resolve().parent
PACKAGE = "helm.sh/helm/v3/cmd/helm"


def build(folder: Path, program: Path) -> None:
    """Compile it."""
    run(["go", "build", *QUICK, "-o", str(program), PACKAGE], folder, CGO_ENABLED="0")


SOURCES = tuple(FOLDER / name for name in ("go.mod", "go.sum", "tools.go"))
HELM = GoProgram(name="helm", sources=SOURCES, build=build)

if __name__ == "__main__":
    raise SystemExit(HELM.main())
