"""Draw panels of the dashboards for the docs: queries on a Prometheus, as lines over time.

    pip install matplotlib
    python -m contrib.grafana.pictures http://localhost:9090 --minutes 10 --client billing

Grafana itself is not needed, so this is what the panels show and not how they look there. Run some clients
for as long as the pictures are to show.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from contrib.grafana.dashboards import dashboards
from contrib.grafana.panels import Panel as GrafanaPanel
from contrib.grafana.panels import Query
from contrib.grafana.promql import INTERVAL_S

FOLDER: Final = Path(__file__).resolve().parents[2] / "host/docs/pictures"
SHOWN: Final = {
    "fleet": (
        "Client instances by software",
        "Which producer waits long for a broker?",
        "Is a producer throttled?",
        "Which client is subscribed but stopped pushing without a goodbye?",
        "Do records wait long in the producer?",
        "Records sent",
    ),
    "client": (
        "Request latency by broker",
        "Throttle time of produce requests",
        "Time of records in the producer's queue",
        "Buffer of the producer",
        "Records sent",
        "Bytes sent",
    ),
    "library-versions": (
        "Client instances over time",
        "Request latency of producers",
        "Fetch latency",
        "Commit latency",
    ),
    "host": ("Pushes", "Delivered pushes", "Client instances", "Throttle time of clients"),
}
"""The panels of each picture."""
UNITS: Final = {"1": "ratio", "By": "bytes", "By/s": "bytes per s", "1/s": "per s", "1/min": "per min"}
"""Words for units of UCUM."""
WIDTH_IN, PANEL_IN = 10.5, 2.3
POINTS: Final = 120
COLORS: Final = 64
LEGEND: Final = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True)
class Line:
    """The values of a series over time."""

    label: str
    times: Sequence[datetime]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A server, and the time that pictures show."""

    url: str
    start_s: float
    end_s: float
    chosen: dict[str, str]
    """Values of the dashboards' variables."""

    def lines(self, query: Query) -> list[Line]:
        """The series of a query over time."""
        expr = query.of_cluster
        for name, value in self.chosen.items():
            expr = expr.replace(f"${name}", value)
        step_s = max(1.0, (self.end_s - self.start_s) / POINTS)
        given = {"query": expr, "start": self.start_s, "end": self.end_s, "step": step_s}
        url = f"{self.url}/api/v1/query_range?{urlencode(given)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return [line(query.legend, each) for each in found]


def line(legend: str, series: dict[str, Any]) -> Line:
    labels = series["metric"]
    text = LEGEND.sub(lambda found: labels.get(found[1], ""), legend).strip()
    return Line(
        text or ", ".join(sorted(labels.values())),
        [datetime.fromtimestamp(float(second), UTC) for second, _ in series["values"]],
        [float(value) for _, value in series["values"]],
    )


def draw(title: str, panels: Sequence[GrafanaPanel], prometheus: Prometheus, path: Path) -> None:
    """Draw the panels of a dashboard below each other."""
    from matplotlib.dates import ConciseDateFormatter
    from matplotlib.figure import Figure

    figure = Figure((WIDTH_IN, PANEL_IN * len(panels)), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", weight="bold")
    for panel, axis in zip(panels, figure.subplots(len(panels), sharex=True), strict=True):
        lines = [each for query in panel.queries for each in prometheus.lines(query)]
        for each in lines:
            axis.plot(each.times, each.values, label=each.label)
        if panel.limit is not None:
            axis.axhline(panel.limit, linestyle=":", color="red", label=f"trouble at {panel.limit:g}")
        unit = "" if panel.unit.startswith("{") else UNITS.get(panel.unit, panel.unit)
        axis.set_title(panel.title if lines else f"{panel.title}: {panel.no_value}", loc="left")
        axis.set_ylabel(unit)
        axis.set_ylim(bottom=0)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        axis.xaxis.set_major_formatter(ConciseDateFormatter(axis.xaxis.get_major_locator()))
        if axis.lines:
            axis.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
    figure.savefig(path, dpi=110)


def make_small(file: Path) -> None:
    """Fewer colors: a picture of lines needs a third of the bytes."""
    from PIL import Image

    with Image.open(file) as picture:
        picture.convert("RGB").quantize(COLORS).save(file, optimize=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m contrib.grafana.pictures")
    parser.add_argument("prometheus", help="URL of the server")
    parser.add_argument("--minutes", type=float, default=60, help="time that the pictures show")
    parser.add_argument("--client", required=True, help="client id of the dashboard about one client")
    parser.add_argument("--to", type=Path, default=FOLDER, help="folder of the pictures")
    given = parser.parse_args(arguments)
    end_s = time.time()
    chosen = {"cluster": ".*", "software": ".*", "principal": ".*"}
    prometheus = Prometheus(given.prometheus, end_s - 60 * given.minutes, end_s, chosen)
    info = f'kafka_client_info{{client_id="{given.client}"}}'
    known = prometheus.lines(Query(info, "{{client_instance_id}}"))
    chosen["client_instance_id"] = "|".join(each.label for each in known)
    given.to.mkdir(parents=True, exist_ok=True)
    for dashboard in dashboards(INTERVAL_S):
        panels = {panel.title: panel for row in reversed(dashboard.rows) for panel in row.panels}
        file = given.to / f"{dashboard.id}.png"
        draw(dashboard.title, [panels[title] for title in SHOWN[dashboard.id]], prometheus, file)
        make_small(file)
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
