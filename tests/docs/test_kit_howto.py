"""The tests on the pages about testing a client pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.reference_page import ROOT, page

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


PAGES = ("howto/test-your-client.md", "howto/test-what-clients-push.md", "howto/test-outages-and-logins.md")


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="alone"),
        pytest.param(["-n", "2"], id="pytest-xdist", marks=pytest.mark.slow),
    ],
)
def test_the_tests_of_the_page_pass(tmp_path: Path, options: list[str], name: str) -> None:
    pytest.importorskip("confluent_kafka")
    pytest.importorskip("aiokafka")
    if options:
        pytest.importorskip("xdist")
    text = "\n\n".join(BLOCK.findall(page(name)))
    (tmp_path / "test_page.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "-p", "no:cacheprovider", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "host/src")}

    done = subprocess.run(
        [*command, str(tmp_path)], env=environment, capture_output=True, text=True, timeout=110, check=False
    )

    assert f"{text.count('def test_')} passed" in done.stdout, done.stdout + done.stderr
