"""``howto/operate.md`` and ``handle-incidents.md``: alerts, metrics and versions are those of the code."""

from __future__ import annotations

import re

import yaml

from odradek.log.directory_format import FORMAT_FILE, FORMAT_VERSION
from odradek.metadata.schema import SCHEMA_VERSION, refusal
from support.metric_rows import declared
from support.reference_page import ROOT, page

TEXT = page("howto/operate.md") + page("howto/handle-incidents.md")
(GROUP,) = yaml.safe_load((ROOT / "contrib/prometheus/alerts.yml").read_text(encoding="utf-8"))["groups"]


def test_its_alerts_exist_and_those_that_page_somebody_are_there() -> None:
    named = set(re.findall(r"`(Odradek[A-Z]\w+)`", TEXT))
    rules = {rule["alert"]: rule["labels"]["severity"] for rule in GROUP["rules"]}

    assert named <= set(rules)
    assert {"OdradekDown", "OdradekPushesNotStored", "OdradekLogDirectoryOffline"} <= named


def test_its_metrics_exist() -> None:
    exported = {name.replace(".", "_") for name in declared()}

    named = set(re.findall(r"`(odradek_\w+)`", TEXT))

    assert {re.sub("_(total|seconds)$", "", name) for name in named} <= exported


def test_it_says_the_versions_and_what_a_refusal_says() -> None:
    assert f"Both formats are at version {SCHEMA_VERSION} in this release" in TEXT
    assert SCHEMA_VERSION == FORMAT_VERSION
    assert f"/logs/{FORMAT_FILE}" in TEXT
    assert f"metadata.db {refusal(3)}".partition(":")[0] in TEXT
