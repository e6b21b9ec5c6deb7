"""Write what the chart renders with each file of ``values/`` to ``rendered/``, for the tests.

    python -m contrib.helm.render

Each file begins with the digest of the chart and its values, so that a forgotten run is noticed without Helm.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

from contrib.go_program import UnavailableError
from contrib.helm.helm import FOLDER, HELM

CHART = FOLDER / "odradek"
VALUES = FOLDER / "values"
RENDERED = FOLDER / "rendered"
KUBERNETES = "1.30.0"
"""The version to render for; Helm itself assumes an old one if it is built from modules."""


def digest(values: Path) -> str:
    """Identifies the chart with these values."""
    found = hashlib.sha256()
    for path in (*sorted(each for each in CHART.rglob("*") if each.is_file()), values):
        found.update(f"{path.relative_to(FOLDER)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def helm(program: Path, command: str, *arguments: str) -> str:
    """The output of Helm.

    Raises:
        subprocess.CalledProcessError: It failed; it said why on stdout or stderr.
    """
    line = [str(program), command, *arguments, "--kube-version", KUBERNETES]
    return subprocess.run(line, capture_output=True, text=True, check=True, timeout=60).stdout


def rendered(program: Path, values: Path) -> str:
    """The content of the file for these values."""
    manifests = helm(
        program, "template", "odradek", str(CHART), "--namespace", "telemetry", "--values", str(values)
    )
    return f"# {digest(values)}\n{manifests}"


def main() -> int:
    try:
        program = HELM.path()
    except UnavailableError as reason:
        raise SystemExit(f"helm: {reason}") from reason
    RENDERED.mkdir(exist_ok=True)
    for values in sorted(VALUES.glob("*.yaml")):
        (RENDERED / values.name).write_text(rendered(program, values), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
