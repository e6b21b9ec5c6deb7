"""Builds the site from the Markdown pages of the repository, and checks its links.

    pip install -r contrib/site/requirements.txt
    python -m contrib.site TARGET [--address https://HOST/PROJECT/blob/v0.1.0]    # from the repository's root

Any warning, and any link without a target, fails the build.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from contrib.site.checked import dead_links
from contrib.site.pages import write

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the site, and check its links.")
    parser.add_argument("target", type=Path, metavar="TARGET", help="a new folder")
    parser.add_argument(
        "--address", default="", metavar="URL", help="of the repository's files, for links to what is no page"
    )
    given = parser.parse_args()
    if given.target.exists():
        sys.exit(f"{given.target} exists: it may have pages that are gone")
    with tempfile.TemporaryDirectory(prefix="odradek-site-") as source:
        write(ROOT, Path(source), given.address)
        options = ["-q", "-W", "--keep-going", "-j", "2", "-c", str(FOLDER), "-d", f"{source}/.doctrees"]
        done = subprocess.run(
            [sys.executable, "-m", "sphinx", *options, source, str(given.target)], check=False
        )
    if done.returncode:
        sys.exit("Sphinx found mistakes")
    dead = list(dead_links(given.target))
    if dead:
        sys.exit("\n".join(["links without a target:", *dead]))
    print(f"{len(list(given.target.rglob('*.html')))} pages in {given.target}")


if __name__ == "__main__":
    main()
