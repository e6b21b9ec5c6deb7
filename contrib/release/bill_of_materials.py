"""Writes the bill of materials of a release: every package that it needs, with version and license.

    python -m contrib.release.bill_of_materials PYTHON DIST     # from the repository's root

PYTHON is the interpreter of the environment into which the wheels in DIST were installed. The format is
CycloneDX; the extra dev has the tool that writes it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from contrib.release.distributions import ROOT, projects

import odradek

TOOLS = {"pip", "setuptools"}
"""Packages that a new virtual environment has; no distribution requires them."""


def bill(python: str) -> dict[str, Any]:
    """The packages of an environment.

    Raises:
        ValueError: A distribution of the release is not in the environment in this version.
    """
    command = [sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible"]
    command += ["--pyproject", str(ROOT / "pyproject.toml"), python]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return completed(json.loads(printed))


def completed(found: dict[str, Any]) -> dict[str, Any]:
    """The bill with the version of the release, which pyproject.toml does not have, and without pip."""
    versions = {each["name"]: each["version"] for each in found["components"]}
    for name in [f"odradek-{project.name}" for project in projects()[1:]]:
        if versions.get(name) != odradek.__version__:
            raise ValueError(f"{name} {odradek.__version__} is not installed, but {versions.get(name)}")
    left_out = {each["bom-ref"] for each in found["components"] if each["name"] in TOOLS}
    component = found["metadata"]["component"] | {"version": odradek.__version__}
    return found | {
        "metadata": found["metadata"] | {"component": component},
        "components": [each for each in found["components"] if each["bom-ref"] not in left_out],
        "dependencies": [each for each in found["dependencies"] if each["ref"] not in left_out],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the bill of materials of a release.")
    parser.add_argument("python", metavar="PYTHON")
    parser.add_argument("target", type=Path, metavar="DIST")
    arguments = parser.parse_args()
    path = arguments.target / f"odradek-{odradek.__version__}.cdx.json"
    path.write_text(json.dumps(bill(arguments.python), indent=1) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
