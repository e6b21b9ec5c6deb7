"""The metrics of the console."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import make_console
from support.console_client import no_cluster, operator_access, page_client
from support.watched_clients import WatchedClients, ms, total

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
NAME = re.compile(r"`([a-z_]+)`")


def test_its_figures_are_those_of_the_page_of_the_host() -> None:
    view = View(no_cluster, now_ms=lambda: ms(100))
    WatchedClients(view.fleet).push(60, total("producer.record.send.total", 5.0, 60, 50))
    console = make_console(view, no_cluster, "nowhere", operator_access())
    with page_client(make_app(console)) as browser:
        browser.get("/", headers={"Host": "elsewhere"})
        answer = browser.get("/metrics")

    found = {each.name: each for each in text_string_to_metric_families(answer.text)}
    values = {name: each.samples[0].value for name, each in found.items()}
    assert values["odradek_console_clients"] == values["odradek_console_records"] == 1
    assert values["odradek_console_reading"] == 0
    assert values["odradek_console_held_bytes"] == view.reading().held_bytes > 0
    assert values["odradek_console_refused_hosts"] == 1
    assert found["odradek_console_refused_hosts"].type == "counter"
    assert found["odradek_console_sessions"].type == "gauge"
    names = {*view.reading().counts, *console.counts}
    assert {f"odradek_console_{each}" for each in names} <= values.keys()
    (section,) = re.findall(r"^### Metrics\n(.*?)^#", README, re.MULTILINE | re.DOTALL)
    written = {each for row in section.splitlines() if row.startswith("| `") for each in NAME.findall(row)}
    assert {f"odradek_console_{each}" for each in written} == values.keys()
