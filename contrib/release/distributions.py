"""Builds the sdists and wheels of a release, and checks what an index and a user will see of them.

python -m contrib.release.distributions DIST     # from the repository's root; needs the extra dev
"""

from __future__ import annotations

import argparse
import gzip
import os
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from email.parser import Parser
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import odradek

ROOT = Path(__file__).parents[2]
FIELDS = (
    *("Summary", "Author", "License-Expression", "License-File", "Requires-Python"),
    "Description-Content-Type",
)
TYPED = "Typing :: Typed"


def projects() -> list[Path]:
    """The folders of the distributions, the host first."""
    return [ROOT, *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]


def build(target: Path) -> None:
    """Build the sdist and the wheel of each distribution, with pins of siblings in place of folders.

    Raises:
        subprocess.CalledProcessError: A build failed; its output has the reason.
    """
    for project in projects():
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(project)]
        subprocess.run(command, env=os.environ | {"ODRADEK_RELEASE": "1"}, stdout=sys.stderr, check=True)
    if "SOURCE_DATE_EPOCH" in os.environ:
        for sdist in target.glob("*.tar.gz"):
            pack_again(sdist, int(os.environ["SOURCE_DATE_EPOCH"]))


def pack_again(sdist: Path, time_s: int) -> None:
    """Give all files of an sdist one time and no owner: setuptools, unlike hatchling, has those of the build.

    Args:
        sdist: The archive.
        time_s: Seconds since the epoch.
    """
    with tarfile.open(sdist) as archive:
        files = [(each, archive.extractfile(each)) for each in archive.getmembers()]
        files = [(each, None if content is None else BytesIO(content.read())) for each, content in files]
    with (
        sdist.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=time_s) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for each, content in sorted(files, key=lambda file: file[0].name):
            each.mtime, each.uid, each.gid, each.uname, each.gname = time_s, 0, 0, "", ""
            each.pax_headers = {}
            archive.addfile(each, content)


def problems(target: Path) -> Iterator[str]:
    """Everything that is wrong with the distributions in a folder."""
    version = odradek.__version__
    names = ["odradek", *(f"odradek_{project.name}" for project in projects()[1:])]
    expected = {f"{name}-{version}{end}" for name in names for end in (".tar.gz", wheel_tags(name))}
    found = {path.name for path in target.iterdir() if path.name.endswith((".tar.gz", ".whl"))}
    yield from (f"{name} is missing" for name in sorted(expected - found))
    yield from (f"{name} is not of version {version}" for name in sorted(found - expected))
    for name in sorted(found & expected):
        text, files = content(target / name)
        yield from (f"{name}: {problem}" for problem in problems_of(text, files, version))


def wheel_tags(name: str) -> str:
    """The end of a wheel's name. odradek-speed has one wheel for a platform and all Pythons."""
    if name != "odradek_speed":
        return "-py3-none-any.whl"
    return f"-cp311-abi3-{sysconfig.get_platform().replace('-', '_')}.whl"


def problems_of(metadata: str, files: list[str], version: str) -> Iterator[str]:
    """Everything that is wrong with one distribution."""
    headers = Parser().parsestr(metadata)
    yield from (f"no {field} in its metadata" for field in FIELDS if field not in headers)
    if headers["Version"] != version:
        yield f"version {headers['Version']}, expected {version}"
    if TYPED not in headers.get_all("Classifier", []):
        yield f"no classifier {TYPED!r}"
    requirements: list[str] = headers.get_all("Requires-Dist", [])
    for requirement in requirements:
        if " @ " in requirement:
            yield f"{requirement!r} is a folder or an address"
    for needed in ("LICENSE", "py.typed"):
        if not any(file.endswith(f"/{needed}") for file in files):
            yield f"no {needed}"


def content(path: Path) -> tuple[str, list[str]]:
    """The metadata of an sdist or a wheel, and the names of its files."""
    if path.suffix == ".whl":
        with ZipFile(path) as wheel:
            files = wheel.namelist()
            (name,) = [file for file in files if file.endswith(".dist-info/METADATA")]
            return wheel.read(name).decode(), files
    with tarfile.open(path) as sdist:
        files = sdist.getnames()
        member = sdist.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO")
        return member.read().decode() if member is not None else "", files


def main() -> None:
    parser = argparse.ArgumentParser(description="Build and check the distributions of a release.")
    parser.add_argument("target", type=Path, metavar="DIST", help="an empty folder")
    target: Path = parser.parse_args().target
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        sys.exit(f"{target} is not empty: it may have distributions of another version")
    build(target)
    found = list(problems(target))
    if found:
        sys.exit("\n".join(found))
    print("\n".join(sorted(path.name for path in target.iterdir())))


if __name__ == "__main__":
    main()
