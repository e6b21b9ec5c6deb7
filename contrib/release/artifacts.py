"""The parts of a release beside the distributions, with the same version: relay, chart and images.

What the machine cannot build is left out with a line that says why.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from contrib.go_program import UnavailableError
from contrib.helm.helm import HELM
from contrib.release.distributions import pack_again

IMAGES = {"host": "odradek", "pipeline": "odradek-pipeline", "ephemeral": "odradek-ephemeral"}
"""The name of the image of each target of the Containerfile."""
ENGINES = ("docker", "podman")


def relay(tree: Path, version: str, dist: Path) -> str:
    """Build the jar of the relay.

    Args:
        tree: The source of the release.
        version: Of the release.
        dist: Where it goes.

    Returns:
        What was built, or why nothing.

    Raises:
        FileNotFoundError: The jar has another version.
        subprocess.CalledProcessError: The build failed.
    """
    if shutil.which("mvn") is None:
        return "left out: the jar of the relay, there is no mvn"
    command = ["mvn", "-q", "-f", "contrib/relay/pom.xml", "-DskipTests", "package"]
    subprocess.run(command, cwd=tree, check=True)
    return Path(shutil.copy(tree / f"contrib/relay/target/odradek-relay-{version}.jar", dist)).name


def chart(tree: Path, version: str, time_s: int, dist: Path) -> str:
    """Package the chart, with the same bytes each time; Helm is built with Go where it is not installed.

    Args:
        tree: The source of the release.
        version: Of the release; the chart and what it installs have it.
        time_s: The time of all files, in seconds since the epoch.
        dist: Where it goes.

    Returns:
        What was built, or why nothing.

    Raises:
        subprocess.CalledProcessError: Helm finds a fault.
    """
    try:
        helm = shutil.which("helm") or str(HELM.path())
    except UnavailableError as reason:
        return f"left out: the chart, there is no helm, and {reason}"
    folder = tree / "contrib/helm/odradek"
    subprocess.run([helm, "lint", "--strict", str(folder)], capture_output=True, check=True)
    versions = ["--version", version, "--app-version", version]
    command = [helm, "package", str(folder), *versions, "--destination", str(dist)]
    subprocess.run(command, capture_output=True, check=True)
    archive = dist / f"odradek-{version}.tgz"
    pack_again(archive, time_s)
    return archive.name


def engine() -> str | None:
    """The container engine that answers, if there is one."""
    for name in ENGINES:
        if shutil.which(name) and subprocess.run([name, "version"], capture_output=True).returncode == 0:
            return name
    return None


def images(tree: Path, version: str, dist: Path) -> list[str]:
    """Build the images from the wheels, and ask each for its version.

    Args:
        tree: The source of the release, with the Containerfile.
        version: Of the release, and the tag of the images.
        dist: The wheels.

    Returns:
        What was built, or why nothing.

    Raises:
        subprocess.CalledProcessError: A build failed.
        ValueError: An image has another version.
    """
    program = engine()
    if program is None:
        return [f"left out: the images, no container engine answers ({', '.join(ENGINES)})"]
    names = []
    for target, name in IMAGES.items():
        build = [program, "build", "-f", str(tree / "contrib/container/Containerfile"), "--target", target]
        if base := os.environ.get("ODRADEK_CONTAINER_BASE"):
            build += ["--build-arg", f"BASE={base}"]
        arguments = ["--build-arg", f"VERSION={version}", "-t", f"{name}:{version}", str(dist)]
        subprocess.run([*build, *arguments], check=True)
        ask = [program, "run", "--rm", "--entrypoint", "odradek", f"{name}:{version}", "--version"]
        said = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
        if version not in said:
            raise ValueError(f"{name}:{version} has {said.strip()}")
        names.append(f"{name}:{version}")
    return names
