"""An hour at three in the morning: a group is behind, a deploy made an application slow, a gateway lost its
destination, and a subscription is too dear.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from odradek import testing
from odradek.client.admin import AdminClient
from odradek.lag.group_lag import GroupLag, Owner, PartitionLag, TopicLag, Trend
from odradek.lag.movement import Progress
from odradek.lag.report import group_points, payloads
from odradek.lag.standing import Standing
from odradek.plugin import LAG_SOURCE, ClientTelemetryPayload
from odradek.testing import RunningHost
from odradek_console.reading.programs import LOST_S, Programs
from odradek_console.view import View
from odradek_console.web.access import Access
from odradek_console.web.access_settings import AccessSettings
from odradek_console.web.console import Console, make_console
from odradek_console.web.users import Role
from support.consoles import LISTEN, MANY, served
from support.waiting import wait_until
from support.watched_clients import JAVA, WatchedClients, level, ms, total

NOW_S: Final = 21_605
DEPLOY_S: Final = 14_400
CONSUMERS: Final = 8
SLOWEST: Final = "billing-3"
GATEWAY: Final = """# TYPE target_info gauge
target_info{{service_instance_id="gateway-{name}",service_version="0.1.0"}} 1
# TYPE odradek_up gauge
odradek_up 1
# TYPE process_uptime_seconds gauge
process_uptime_seconds 21600
# TYPE process_memory_usage_bytes gauge
process_memory_usage_bytes 81000000
# TYPE odradek_connections gauge
odradek_connections 12
# TYPE odradek_connections_limit gauge
odradek_connections_limit 1000
# TYPE odradek_gateway_switch gauge
odradek_gateway_switch 0
# TYPE odradek_gateway_ready gauge
odradek_gateway_ready 1
# TYPE odradek_forwarder_queued gauge
odradek_forwarder_queued{{plugin="otlp"}} {waiting}
# TYPE odradek_forwarder_delivered counter
odradek_forwarder_delivered_total{{plugin="otlp"}} 700
# TYPE odradek_forwarder_failing_seconds gauge
{failing}
"""
FAILING: Final = (
    'odradek_forwarder_failing_seconds{plugin="otlp",error="Retry: ClientConnectorError: Cannot connect to '
    'host collector.example:4318 ssl:default [Connection refused]"} 30'
)


def fill(view: View) -> None:
    """Let clients push for six hours."""
    clients = WatchedClients(view.fleet)
    for at in range(60, NOW_S, 60):
        deploy(clients, at)
        if at > NOW_S - 3_600:
            consume(clients, at)
    lag(clients)
    view.fleet.lags.read(ms(NOW_S))


def deploy(clients: WatchedClients, at: int) -> None:
    is_new = at > DEPLOY_S
    for number in range(2):
        clients.push(
            at,
            level("producer.request.latency.avg", 400 if is_new else 5, at),
            level("producer.record.queue.time.avg", 2, at),
            total("producer.record.send.total", 6_000, at, at - 60),
            client_id=f"orders-{number}",
            instance=bytes([number + 10 * is_new + 1]) * 16,
            terminating=not is_new and at == DEPLOY_S,
            **(JAVA | {"client_software_version": "4.4.0"} if is_new else {}),
        )


def consume(clients: WatchedClients, at: int) -> None:
    for number in range(CONSUMERS):
        clients.push(
            at,
            level("consumer.poll.idle.ratio.avg", 0.02 if number == 3 else 0.6, at),
            level("consumer.time.between.poll.avg", 9_000 if number == 3 else 40, at),
            level("consumer.fetch.manager.fetch.latency.avg", 20, at),
            total("consumer.fetch.manager.records.consumed.total", 600, at, at - 60),
            client_id=f"billing-{number}",
            instance=bytes([number + 40]) * 16,
            client_address=f"10.0.0.{number}",
            group_id="billing",
        )


def lag(clients: WatchedClients) -> None:
    """Seven of eight members are behind, the fourth by the most."""
    read = [
        PartitionLag(
            number, 10, Standing(10, 0 if number == 0 else 9_000 if number == 3 else 500, 0, 0, 0), None
        )
        for number in range(CONSUMERS)
    ]
    owners = {
        number: Owner(f"m{number}", f"billing-{number}", f"10.0.0.{number}") for number in range(CONSUMERS)
    }
    topic = TopicLag(partitions=read, owners=owners, trend=Trend(Progress.FALLING_BEHIND, 1.0, None))
    group = GroupLag(
        group="billing", type="classic", state="Stable", members=CONSUMERS, topics={"payments": topic}
    )
    for data in payloads(group_points(group), ms(NOW_S - 5), "east"):
        record = clients.record(NOW_S - 5)
        record.source, record.payload = LAG_SOURCE, ClientTelemetryPayload(b"G" * 16, False, data)
        clients.fleet.add(record)


@contextmanager
def gateway(waiting: int) -> Iterator[str]:
    """The metrics page of a gateway whose destination takes nothing now."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            name, failing = ("b", FAILING) if waiting else ("a", "")
            self.wfile.write(GATEWAY.format(waiting=waiting, name=name, failing=failing).encode())

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def three_in_the_morning(*names: str) -> Iterator[tuple[str, RunningHost, list[str]]]:
    """Yield the URL of the console, the host, and the URLs of two gateways. The second one is ill.

    Args:
        names: Subscriptions of all metrics.
    """
    with ExitStack() as stack:
        host = stack.enter_context(testing.host(telemetry_durability="log"))
        for name in names:
            host.subscribe("*", name=name)
        host.subscribe("org.apache.kafka.consumer.poll.", name="polls")
        gateways = [stack.enter_context(gateway(waiting)) for waiting in (0, 4_000)]
        console = stack.enter_context(console_of(host, gateways))
        yield stack.enter_context(served(console)), host, gateways


def console_of(host: RunningHost, gateways: list[str]) -> Console:
    connect = partial(AdminClient, host.bootstrap)
    view = View(connect, now_ms=lambda: ms(NOW_S))
    rights = AccessSettings(local_role=Role.OPERATOR, requests_per_second=MANY)
    console = make_console(view, connect, host.bootstrap, Access(rights, LISTEN))
    console.now_ms = view.now_ms
    clock = iter([0.0, 0.0])
    console.programs = Programs(gateways, lambda: next(clock, LOST_S))
    console.programs.ask()
    console.programs.ask()
    fill(view)
    return console


def subscriptions(host: RunningHost) -> list[str]:
    """The names of the subscriptions at the host."""
    with AdminClient(host.bootstrap) as admin:
        return admin.list_client_metrics()


def wait_until_gone(host: RunningHost, name: str) -> None:
    wait_until(lambda: name not in subscriptions(host), lambda: subscriptions(host))
