"""Write all files that depend on the reference of client metrics: dashboards, rules, tests, the runbook.

    python -m contrib.grafana                                # from the repository's root
    python -m contrib.grafana --check                        # exit status 1 if a file is out of date
    python -m contrib.grafana --interval 300 --to DIRECTORY  # for another push interval, elsewhere
    python -m contrib.grafana --bootstrap-server HOST:PORT --runbook-url URL --to DIRECTORY  # for one place

The reference is ``host/src/odradek/findings/client_metrics.toml``, the table of troubles
``host/src/odradek/findings/troubles.py``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from contrib.grafana.dashboards import dashboards, written
from contrib.grafana.promql import INTERVAL_S
from contrib.grafana.rule_tests import alert_tests, recording_tests
from contrib.grafana.rules import Place, alert_manager_rules, alert_rules, recording_rules
from contrib.grafana.runbook import PAGE, runbook

ROOT = Path(__file__).resolve().parents[2]
ALERTMANAGER = "contrib/alertmanager/"
PROMETHEUS = "contrib/prometheus/"
DASHBOARDS = "contrib/grafana/dashboards/"


def files(interval_s: int, place: Place = Place()) -> dict[str, str]:  # noqa: B008  it is frozen
    """The content of each file by its path in the repository."""
    return {
        PROMETHEUS + "client-alerts.yml": alert_rules(interval_s, place),
        PROMETHEUS + "client-alerts.test.yml": alert_tests(interval_s),
        PROMETHEUS + "client-recording.yml": recording_rules(interval_s),
        PROMETHEUS + "client-recording.test.yml": recording_tests(interval_s),
        ALERTMANAGER + "client-alerts.yml": alert_manager_rules(interval_s),
        PAGE: runbook(interval_s),
        **{f"{DASHBOARDS}{each.id}.json": written(each, place.console) for each in dashboards(interval_s)},
    }


def outdated(written: dict[str, str]) -> list[str]:
    """The paths of files that differ from what would be written."""
    return [
        path
        for path, text in written.items()
        if not (ROOT / path).exists() or (ROOT / path).read_text(encoding="utf-8") != text
    ]


def place_of(given: argparse.Namespace) -> Place:
    """What a command line says of the place; the rest are external labels of Prometheus."""
    usual = Place()
    bootstrap = given.bootstrap_server or usual.bootstrap
    if given.command_config:
        bootstrap += f" --command-config {given.command_config}"
    return Place(bootstrap, given.runbook_url or usual.runbook, (given.console_url or "").rstrip("/"))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m contrib.grafana")
    parser.add_argument("--check", action="store_true", help="only say which files are out of date")
    parser.add_argument("--interval", type=int, default=INTERVAL_S, help="push interval in seconds")
    parser.add_argument("--bootstrap-server", help="address of the cluster for the commands of alerts")
    parser.add_argument("--command-config", help="properties file of a client, for the same commands")
    parser.add_argument("--runbook-url", help="URL of the page with the runbook, for the links of alerts")
    parser.add_argument("--console-url", help="URL of the console, for the links of alerts and dashboards")
    parser.add_argument("--to", type=Path, default=ROOT, help="directory to write into")
    given = parser.parse_args(arguments)
    written = files(given.interval, place_of(given))
    if given.check:
        found = outdated(written)
        for path in found:
            print(f"{path} is out of date: run python -m contrib.grafana", file=sys.stderr)
        return bool(found)
    for path, text in written.items():
        target = given.to / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
