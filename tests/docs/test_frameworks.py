"""The test files of the page about frameworks pass. The frameworks are installed in a folder of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.reader import pip_cache
from support.reference_page import ROOT, page

PAGE = "howto/test-with-frameworks.md"
FILE = re.compile(r"^<!-- file: (\S+) -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PACKAGES = ("django", "fastapi", "httpx", "faust-streaming", "faststream[confluent]", "quixstreams", "pytest")
LIMIT_S = 600


def test_every_framework_has_a_file() -> None:
    headings = re.findall(r"^## (.+)$", page(PAGE), re.MULTILINE)
    names = [name for name, _ in FILE.findall(page(PAGE))]

    assert names == [f"test_{heading.lower().replace(' ', '')}.py" for heading in headings]


@pytest.mark.slow
@pytest.mark.timeout(2 * LIMIT_S)
def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    pytest.importorskip("aiokafka")
    packages = tmp_path / "packages"
    install(packages)
    folder = tmp_path / "page"
    folder.mkdir()
    for name, text in FILE.findall(page(PAGE)):
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (packages, ROOT / "host/src")))}

    done = subprocess.run(
        [*command, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )

    assert f"{page(PAGE).count('def test_')} passed" in done.stdout, done.stdout + done.stderr


def install(folder: Path) -> None:
    """Install the frameworks, or skip the test if there is no package index."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--target", str(folder)]
    done = subprocess.run(
        [*command, *PACKAGES],
        env={**os.environ, "PIP_CACHE_DIR": pip_cache()},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"the frameworks cannot be installed: {done.stderr.splitlines()[-1]}")
