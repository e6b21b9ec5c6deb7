"""Print the path of an OpenTelemetry collector, built from the modules in ``builder.yaml``.

    python -m contrib.otelcol.collector     # <cache>/odradek/otelcol/<digest>/otelcol

Go fetches the modules through its proxy, which takes two minutes the first time. Build output goes to
``$ODRADEK_OTELCOL_CACHE`` (default ``~/.cache/odradek/otelcol``) and is rebuilt when ``builder.yaml`` has
changed. If Go or the modules are not available, the exit status is 3, with one line on stderr.
"""

from __future__ import annotations

from pathlib import Path

from contrib.go_program import QUICK, GoProgram, UnavailableError, run

MANIFEST = Path(__file__).resolve().parent / "builder.yaml"
BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.155.0"


def build(folder: Path, program: Path) -> None:
    """Generate the main package and compile it.

    The builder ends with ``go mod tidy``, which also fetches modules that only the tests of the modules need,
    and fails if the proxy does not have them. All files are written by then, so only the compiler decides
    whether the build fails.
    """
    try:
        run(["go", "run", BUILDER, "--config", MANIFEST.name, "--skip-compilation"], folder)
    except UnavailableError:
        if not (folder / "build" / "go.mod").exists():
            raise
    run(["go", "build", *QUICK, "-o", str(program), "."], folder / "build")


COLLECTOR = GoProgram(name="otelcol", sources=(MANIFEST,), build=build)

if __name__ == "__main__":
    raise SystemExit(COLLECTOR.main())
