"""``reference/client-conformance.md`` shows the behavior of the recorded clients."""

from __future__ import annotations

import re
import subprocess
import sys

from odradek.testing.conformance import RULES
from odradek.testing.conformance.standard_metrics import STANDARD_METRICS
from odradek.testing.pushes import recorded_clients
from support.reference_page import ROOT, page


def test_the_page_is_generated_from_the_recorded_pushes() -> None:
    command = [sys.executable, "-m", "contrib.docs.client_conformance", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr or "run python -m contrib.docs.client_conformance"


def test_each_client_rule_and_metric_is_on_the_page() -> None:
    text = page("reference/client-conformance.md")

    rows = {line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")}
    with_sections = set(re.findall(r"^### (.+)$", text, re.MULTILINE))
    assert {f"[{each}](#{each})" if each in with_sections else each for each in recorded_clients()} <= rows
    assert {rule.name for rule in RULES if f"\n| {rule.name} | {rule.expected} |" not in text} == set()
    assert {metric.name for metric in STANDARD_METRICS if f"\n| {metric.name} |" not in text} == set()
