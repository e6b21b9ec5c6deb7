"""``reference/runbook.md`` has a section with advice and a valid command for each alert about clients."""

from __future__ import annotations

import shlex

import pytest
import yaml
from contrib.grafana.alerts import alerts
from contrib.grafana.promql import INTERVAL_S

from support.command_lines import parsed
from support.reference_page import DOCS, ROOT, blocks, rows, sections

RULES = yaml.safe_load((ROOT / "contrib/prometheus/client-alerts.yml").read_text(encoding="utf-8"))
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"] if "alert" in rule}
SCRIPTS = [text for language, text in blocks("reference/runbook.md") if language == "sh"]
COMMANDS = [line for text in SCRIPTS for line in text.replace("\\\n", "").splitlines()]


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_leads_to_its_section(name: str) -> None:
    template, _, anchor = ALERTS[name]["annotations"]["runbook_url"].partition("#")
    page = template.split('"')[1]

    assert template == f'{{{{ or $externalLabels.runbook_base "{page}" }}}}'
    assert (DOCS / page).exists()
    section = sections(page)[anchor]
    assert f"`{name}`" in section
    advice = section.partition("\n\n")[2].partition("```")[0]
    assert len(advice.split()) > 8
    assert len(section.split()) < 200


def test_the_table_has_every_alert() -> None:
    links = rows(sections("reference/runbook.md")["All alerts"])

    assert links.keys() - {"alert"} == {f"[`{alert.name}`](#{alert.id})" for alert in alerts(INTERVAL_S)}


@pytest.mark.parametrize("line", sorted(set(COMMANDS)))
def test_a_command_is_valid(line: str) -> None:
    written = line.replace("$KAFKA_BOOTSTRAP", "kafka:9092").replace("$client_instance_id", "-AAAA")
    program, *arguments = shlex.split(written)

    assert program == "odradek"
    assert parsed(arguments)
