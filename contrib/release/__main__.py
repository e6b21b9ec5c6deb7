"""Makes a release of a commit, and tries it.

    python -m contrib.release DIST --home https://HOST/PROJECT    # from the repository's root; needs dev

Builds all distributions twice, compares their bytes, checks them, installs each extra alone in a bare
environment, all of them with the lowest dependencies, and with each other Python; opens a data directory of
an earlier commit, and refuses one of a later format; writes the bill of materials and the digests; builds
the relay, the chart and the images with the same version. With ``--publish``, what passed is uploaded to
the index. What the machine cannot build (it lacks Maven, Go or a container engine) is left out with a line.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from contrib.release import artifacts, upgrade
from contrib.release.distributions import ROOT
from contrib.release.environments import NO_PLUGIN, Environment, extras
from contrib.release.pythons import others
from contrib.release.tree import address, committed_s, exported

import odradek

TAG = f"v{odradek.__version__}"
DIGESTS = "SHA256SUMS"
PUSHED = re.compile(r"(\d+) data points pushed")


def built(commit: str, home: str, scratch: Path, target: Path) -> None:
    """Build the distributions of a commit, always in the same folder: compilers note where they were."""
    tree = exported(ROOT, commit, scratch / "tree")
    if home:
        address(tree, home, TAG)
    environ = os.environ | {
        "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'host/src'}",
        "SOURCE_DATE_EPOCH": committed_s(ROOT, commit),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "contrib.release.distributions", str(target)]
    done = subprocess.run(command, cwd=tree, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the build failed:\n{done.stderr[-4000:]}")
    shutil.rmtree(tree)


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name != DIGESTS
    }


def compare(first: Path, second: Path) -> None:
    """Compare two builds.

    Raises:
        ValueError: A file differs.
    """
    one, other = digests(first), digests(second)
    differing = [name for name in sorted(one | other) if one.get(name) != other.get(name)]
    if differing:
        raise ValueError(f"a second build differs in {', '.join(differing)}")


def try_extras(dist: Path, scratch: Path) -> None:
    """Install the host alone and with each extra.

    Raises:
        ValueError: A plugin is not there, or cannot be loaded.
    """
    for extra in ["", *extras(dist)]:
        environment = Environment(scratch / f"env-{extra or 'host'}", dist)
        environment.install(f"odradek{f'[{extra}]' if extra else ''}=={odradek.__version__}")
        states = environment.states()
        if "broken" in states.values() or (extra and extra not in NO_PLUGIN and extra not in states):
            raise ValueError(f"odradek[{extra}]: {states}")
        shutil.rmtree(environment.bin.parent)


def try_lowest(dist: Path, scratch: Path) -> None:
    """Run the demos with the lowest dependencies."""
    environment = Environment(scratch / "env-lowest", dist)
    environment.install_lowest(f"odradek[all]=={odradek.__version__}")
    try_demos(environment, scratch)


def try_other_pythons(dist: Path, scratch: Path) -> None:
    """Run the demos with each other Python that this machine has."""
    for version, python in others():
        print(f"  {version}: {python or 'left out, it is not here'}", flush=True)
        if python is not None:
            environment = Environment(scratch / f"env-{version}", dist, python)
            environment.install(f"odradek[all]=={odradek.__version__}")
            try_demos(environment, scratch)
            shutil.rmtree(environment.bin.parent)


def try_demos(environment: Environment, scratch: Path) -> None:
    """Run the demos of what is installed."""
    for demo in (("--console",), ("--gateway",), ("--secure",)):
        said = environment.run("odradek", "demo", *demo, "--seconds", "6", cwd=scratch)
        if pushed_nothing(said):
            raise ValueError(f"demo {' '.join(demo)}: {said}")


def pushed_nothing(said: str) -> bool:
    """Whether a demo tells at its end that no data point was pushed; at first, there may be none yet."""
    return PUSHED.findall(said)[-1:] == ["0"]


def try_upgrade(dist: Path, previous: str, scratch: Path) -> None:
    """Open the data of an earlier commit, and refuse those of a later format."""
    built(previous, "", scratch, scratch / "previous")
    old, new = (
        Environment(scratch / f"env-{name}", wheels)
        for name, wheels in (("old", scratch / "previous"), ("new", dist))
    )
    for environment in (old, new):
        environment.install("odradek")
    data = scratch / "data"
    upgrade.fill(old, data)
    upgrade.check(new, data)
    print("  a newer format:", upgrade.check_refused(new, data).splitlines()[-1])


def bill(dist: Path, scratch: Path) -> None:
    """Write the bill of materials of everything."""
    environment = Environment(scratch / "env-all", dist)
    environment.install(f"odradek[all,spark]=={odradek.__version__}")
    command = [
        sys.executable,
        "-m",
        "contrib.release.bill_of_materials",
        str(environment.bin / "python"),
        str(dist),
    ]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def beside(dist: Path, scratch: Path) -> None:
    """The jar of the relay, the chart and the images, as far as the machine can build them."""
    tree, version = exported(ROOT, "HEAD", scratch / "beside"), odradek.__version__
    print(" ", artifacts.relay(tree, version, dist))
    print(" ", artifacts.chart(tree, version, int(committed_s(ROOT, "HEAD")), dist))
    for line in artifacts.images(tree, version, dist):
        print(" ", line)


def uploaded(dist: Path) -> list[Path]:
    """The files that an index gets: the plugins first, because the extras of the host name them.

    An index takes no wheel for this Linux alone, only those for many (manylinux): pip compiles odradek-speed
    from its sdist, or the installation goes without it.
    """
    found = [path for path in dist.iterdir() if path.name.endswith((".whl", ".tar.gz"))]
    return sorted(
        (path for path in found if "-linux_" not in path.name),
        key=lambda path: (path.name.startswith("odradek-"), path.name),
    )


def check_upload(dist: Path, scratch: Path, *, publish: bool) -> None:
    """Let twine check what an index will see, and upload it if that is asked for."""
    environment = Environment(scratch / "env-twine", dist)
    environment.run("pip", "install", "-q", "twine")
    environment.run("twine", "check", "--strict", *uploaded(dist))
    if publish:
        environment.run("twine", "upload", "--non-interactive", *uploaded(dist))


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a release of HEAD, and try it.")
    parser.add_argument("target", type=Path, metavar="DIST", help="a new folder")
    parser.add_argument(
        "--home", default="", metavar="URL", help="address of the repository, for links and metadata"
    )
    parser.add_argument(
        "--previous", default="HEAD~1", metavar="COMMIT", help="an earlier state, whose data are opened"
    )
    parser.add_argument("--publish", action="store_true", help="upload what passed, with the login of twine")
    given = parser.parse_args()
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        sys.exit("the checkout has changes that are not committed")
    if given.target.exists():
        sys.exit(f"{given.target} exists: it may have files of another version")
    if given.publish and not given.home:
        sys.exit("--publish needs --home: the pages of an index have links to the repository")
    dist = given.target.resolve()
    with tempfile.TemporaryDirectory(prefix="odradek-release-") as folder:
        scratch = Path(folder)
        steps: list[tuple[str, Callable[[], None]]] = [
            ("build", lambda: built("HEAD", given.home, scratch, dist)),
            ("build again", lambda: built("HEAD", given.home, scratch, scratch / "second")),
            ("compare", lambda: compare(dist, scratch / "second")),
            ("each extra alone", lambda: try_extras(dist, scratch)),
            ("lowest dependencies", lambda: try_lowest(dist, scratch)),
            ("other Pythons", lambda: try_other_pythons(dist, scratch)),
            ("upgrade", lambda: try_upgrade(dist, given.previous, scratch)),
            ("bill of materials", lambda: bill(dist, scratch)),
            ("relay, chart and images", lambda: beside(dist, scratch)),
            ("index", lambda: check_upload(dist, scratch, publish=given.publish)),
        ]
        for name, step in steps:
            print(name, flush=True)
            try:
                step()
            except (OSError, RuntimeError, ValueError, subprocess.CalledProcessError) as error:
                sys.exit(f"{name}: {error}")
    lines = [f"{digest}  {name}\n" for name, digest in digests(dist).items()]
    (dist / DIGESTS).write_text("".join(lines), encoding="utf-8")
    print("".join(lines), end="")


if __name__ == "__main__":
    main()
