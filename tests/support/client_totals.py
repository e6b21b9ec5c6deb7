"""Totals that clients have themselves, and those of their series in Prometheus."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from integration.java.jvm import Jvm
from support.hosts import ThreadedHost
from support.prometheus_server import PrometheusServer
from support.waiting import wait_until

PATIENCE_S = 60.0
STATIC = "static"
"""The value of labels that an enricher sets."""
KINDS = ("producer", "consumer")
Key = tuple[str, str]
"""The name of a series, and its labels that differ between the series of a client."""
SAME_FOR_A_CLIENT = re.compile(
    r"__name__|job|instance|path|client_(?!source_port).*|principal|broker_node_id|cluster_name"
    r"|group_(instance_)?id|otel_scope_.*"
)


def series_name(otlp: str) -> str:
    """The name of a counter in Prometheus (OpenTelemetry's rules, with suffixes)."""
    words = [word for word in re.split(r"[^a-zA-Z0-9]+", otlp) if word not in ("", "total")]
    return "_".join([*words, "total"])


def reported(lines: list[str]) -> dict[Key, float]:
    """The totals that a client prints."""
    found = {}
    for line in lines:
        name, labels, value = line.split("\t")
        found[series_name(name), labels] = float(value)
    return found


def stored(prometheus: PrometheusServer, client_id: str, path: str = "") -> list[tuple[Key, float]]:
    """The last totals of a client in Prometheus, also of series that have ended, with all of its series. What
    a host has seen of the client is none of them.

    Args:
        prometheus: Where to search.
        client_id: The client.
        path: More matchers: series that came on one way.
    """
    found = []
    selector = f'{{__name__=~".+_total",__name__!~"io_odradek_.+",client_id="{client_id}",{path}}}'
    for labels, value in prometheus.query(f"last_over_time({selector}[5m])"):
        own = sorted(
            f"{name}={text}"
            for name, text in labels.items()
            if not SAME_FOR_A_CLIENT.fullmatch(name) and text != STATIC
        )
        found.append(((labels["__name__"], ",".join(own)), value))
    return found


@dataclass
class JavaClient:
    """A running Java client."""

    client_id: str
    process: subprocess.Popen[str]

    def totals(self) -> dict[Key, float]:
        """Close the client and return the totals of its last push."""
        out, _ = self.process.communicate("end\n", timeout=PATIENCE_S)
        assert self.process.returncode == 0
        return reported(out.splitlines())


@contextmanager
def java_client(jvm: Jvm, host: ThreadedHost, kind: str) -> Iterator[JavaClient]:
    client_id = f"java-{kind}"
    command = jvm.command("odradek.TelemetryClient", host.bootstrap, "orders", client_id, kind, "totals")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield JavaClient(client_id, process)
        finally:
            process.kill()


def differences(expected: Mapping[Key, float], found: list[tuple[Key, float]]) -> list[str]:
    """A line for each total that is not exactly one series with its value."""
    times = Counter(key for key, _ in found)
    lines = [f"{key}: {count} series" for key, count in times.items() if count > 1]
    values = dict(found)
    lines += [
        f"{key}: the client has {expected.get(key)}, Prometheus {values.get(key)}"
        for key in expected.keys() | values.keys()
        if expected.get(key) != values.get(key)
    ]
    return sorted(lines)


def closed_clients(jvm: Jvm, host: ThreadedHost, prometheus: PrometheusServer) -> dict[str, dict[Key, float]]:
    """Run a producer and a consumer for some pushes, and return their totals by client id."""
    with ExitStack() as stack:
        clients = [stack.enter_context(java_client(jvm, host, kind)) for kind in KINDS]
        for client in clients:
            wait_for_pushes(prometheus, client)
        expected = {client.client_id: client.totals() for client in clients}
    assert min(map(len, expected.values())) > 30
    return expected


def check_totals(
    expected: Mapping[str, Mapping[Key, float]], prometheus: PrometheusServer, path: str = ""
) -> None:
    """Wait until all totals of closed clients are those of their series."""

    def wrong() -> str:
        return "\n".join(
            f"{client_id}: {line}"
            for client_id, totals in expected.items()
            for line in differences(totals, stored(prometheus, client_id, path))
        )

    wait_until(lambda: not wrong(), wrong, PATIENCE_S)


def wait_for_pushes(prometheus: PrometheusServer, client: JavaClient) -> None:
    """Wait until some pushes of a client are in Prometheus."""
    name = f"org_apache_kafka_{client.client_id.removeprefix('java-')}_request_total"
    requests = f'max({name}{{client_id="{client.client_id}"}})'

    def are_there() -> bool:
        assert client.process.poll() is None
        return any(value > 60 for _, value in prometheus.query(requests))

    wait_until(
        are_there, lambda: f"no pushes of {client.client_id}: {prometheus.log.read_text()}", PATIENCE_S
    )
