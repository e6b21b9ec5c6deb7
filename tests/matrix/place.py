"""Where clients live: a host, or a gateway before one; with a console and two Prometheus that watch it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from contrib.capture.ports import free_ports, free_range
from contrib.grafana.promql import INTERVAL_S
from contrib.grafana.rules import alert_rules
from contrib.prometheus.prometheus import PROMETHEUS

from matrix.hurry import FACTOR, hurried_rules
from matrix.watch import Watch, console_rings, prometheus_rings, watching
from odradek.client.admin import AdminClient
from odradek.client.resources import ConfigChange, ConfigResource, NewTopic
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.wire.config_resource import ResourceType
from support.child_process import same_imports
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.hosts import ServeProcess
from support.prometheus_server import prometheus_server

TELEMETRY: Final = "client-telemetry"
"""The topic of a gateway's clients, at its cluster."""
PARTITIONS: Final = 4
SESSION_MS: Final = 6_000
EACH_S: Final = 0.05
"""Between two records of the feeder for one topic."""
PROMETHEUS_CONFIG: Final = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs: {targets}
"""
TARGETS: Final = '[{{job_name: odradek, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}]'


class HurriedProgram(ServeProcess):
    """A program of Odradek whose findings hurry; it starts again with the same ports."""

    program = ("-m", "matrix.hurry")

    def __init__(self, command: str, *arguments: str, ready_start: str = "odradek ready ") -> None:
        self.command, self.ready_start, self.arguments = command, ready_start, arguments
        super().__init__(*arguments, env=same_imports())

    def again(self) -> None:
        """Start after it was stopped."""
        HurriedProgram.__init__(self, self.command, *self.arguments, ready_start=self.ready_start)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.terminate()


def options(*settings: str) -> list[str]:
    return [each for setting in settings for each in ("--set", setting)]


@dataclass
class Feeder:
    """Produces 20 records a second to each topic that is fed."""

    bootstrap: str
    fed: set[str] = field(default_factory=set)
    ended: threading.Event = field(default_factory=threading.Event)

    def producer(self) -> Any:
        import confluent_kafka

        return confluent_kafka.Producer(
            {"bootstrap.servers": self.bootstrap, "client.id": "feeder.1", "linger.ms": 20}
        )

    def run(self) -> None:
        producer = self.producer()
        while not self.ended.wait(EACH_S):
            for topic in sorted(self.fed):
                self.put(producer, topic)
            producer.poll(0)
        producer.flush(5)

    @staticmethod
    def put(producer: Any, topic: str, size: int = 20) -> None:
        try:
            producer.produce(topic, b"x" * size)
        except BufferError:
            producer.poll(0.1)

    def fill(self, topic: str, records: int, size: int = 20) -> None:
        """Produce many records at once."""
        producer = self.producer()
        for _ in range(records):
            self.put(producer, topic, size)
        producer.flush(30)


@dataclass
class Place:
    """A running place."""

    way: str
    bootstrap: str
    login: str
    """The listener that wants a password; empty if there is none."""
    upstream: str
    """The address of the host, past the gateway."""
    programs: dict[str, HurriedProgram]
    proxy: CuttingProxy | None
    """Between the gateway and the host."""
    feeder: Feeder
    watch: Watch

    def create_topic(self, name: str) -> None:
        with AdminClient(self.upstream) as admin:
            admin.create_topics([NewTopic(name=name, partitions=PARTITIONS)])

    def limit(self, client_id: str, **quotas: float | None) -> None:
        """Set quotas of a client id; None removes one."""
        with AdminClient(self.upstream) as admin:
            admin.alter_client_quotas({ClientQuotaEntity(client_id=client_id): quotas})

    def subscribe(self, metrics: str) -> None:
        """Add a subscription of all clients, beside the one of the settings."""
        resource = ConfigResource(ResourceType.CLIENT_METRICS, "more")
        with AdminClient(self.upstream) as admin:
            admin.incremental_alter_configs({resource: [ConfigChange("metrics", metrics)]})

    def restart(self, program: str, down_s: float) -> None:
        """Stop a program in order, and start it again."""
        self.programs[program].terminate()
        time.sleep(down_s)
        self.programs[program].again()


def telemetry_settings(scraped: int, remote_url: str, folder: Path) -> list[str]:
    return [
        "subscriptions.all.metrics=*",
        "subscriptions.all.interval.ms=1000",
        f"plugins.prometheus.listener=http://127.0.0.1:{scraped}",
        f"plugins.prometheus.linger.ms={300_000 // FACTOR}",
        f"plugins.prometheus.totals.file={folder / 'scrape-totals.db'}",
        f"plugins.prometheus.remote_write.url={remote_url}/api/v1/write",
        f"plugins.prometheus.remote_write.totals.file={folder / 'remote-totals.db'}",
        f"plugins.prometheus.remote_write.resend.ms={60_000 // FACTOR}",
    ]


@contextmanager
def prometheus(folder: Path, name: str, scraped: int | None) -> Iterator[str]:
    """The URL of a server with the shipped rules, hurried."""
    (port,), mine = free_ports(1), folder / name
    mine.mkdir()
    rules, config = mine / "rules.yml", mine / "prometheus.yml"
    rules.write_text(hurried_rules(alert_rules(INTERVAL_S)))
    targets = "[]" if scraped is None else TARGETS.format(port=scraped)
    config.write_text(PROMETHEUS_CONFIG.format(rules=rules, targets=targets))
    flags = ("--web.enable-remote-write-receiver", f"--query.lookback-delta={300 // FACTOR}s")
    with prometheus_server(PROMETHEUS.path(), config, port, mine, *flags) as server:
        yield server.url


@contextmanager
def place(way: str, folder: Path) -> Iterator[Place]:
    """Start a ``host``, or a ``gateway`` before one, with everything that watches."""
    folder.mkdir(parents=True)
    port, login_port, scraped = free_ports(3)
    upstream = f"127.0.0.1:{port}"
    at_host = way == "host"
    with ExitStack() as stack:
        scraping = stack.enter_context(prometheus(folder, "scrape", scraped))
        written = stack.enter_context(prometheus(folder, "remote", None))
        telemetry = telemetry_settings(scraped, written, folder)
        settings = [
            f"listeners=PLAINTEXT://{upstream},SASL_PLAINTEXT://127.0.0.1:{login_port}",
            "sasl.enabled.mechanisms=PLAIN",
            f"data.dir={folder / 'host'}",
            "node.id=1",
            "auto.create.topics.enable=false",
            f"group.initial.rebalance.delay.ms={3_000 // FACTOR}",
            *(f"group.consumer.{each}session.timeout.ms={SESSION_MS}" for each in ("min.", "")),
            *(f"group.consumer.{each}heartbeat.interval.ms={SESSION_MS // 4}" for each in ("min.", "")),
        ]
        proxy = None
        if at_host:
            settings += ["telemetry.observe=silent", *telemetry]
        else:
            proxy, proxy_port = stack.enter_context(cutting_proxy(port))
            settings += [
                "telemetry.durability=memory",
                f"advertised.listeners=PLAINTEXT://127.0.0.1:{proxy_port},SASL_PLAINTEXT://127.0.0.1:{login_port}",
            ]
        programs = {"host": HurriedProgram("serve", *options(*settings))}
        stack.callback(programs["host"].stop)
        bootstrap, topic = upstream, "__client_telemetry"
        if not at_host:
            with AdminClient(upstream) as admin:
                admin.create_topics([NewTopic(name=TELEMETRY, partitions=1)])
            bootstrap, topic = f"127.0.0.1:{free_range(2)}", TELEMETRY
            before = [
                f"listeners=PLAINTEXT://{bootstrap}",
                "gateway.nodes=1",
                f"data.dir={folder / 'gateway'}",
                f"plugins.kafka.bootstrap.servers={upstream}",
                f"plugins.kafka.topic={TELEMETRY}",
            ]
            programs["gateway"] = HurriedProgram(
                "gateway", "--upstream", f"127.0.0.1:{proxy_port}", *options(*before, *telemetry)
            )
            stack.callback(programs["gateway"].stop)
        console = HurriedProgram(
            "console",
            *("--bootstrap-server", upstream, "--topic", topic, "--listen", "127.0.0.1:0"),
            ready_start="odradek console ready ",
        )
        stack.callback(console.stop)
        outlets = {
            "console": partial(console_rings, console.ready.split()[-1].rstrip("/")),
            "scrape": partial(prometheus_rings, "scrape", scraping),
            "remote write": partial(prometheus_rings, "remote write", written),
        }
        feeder = Feeder(upstream)
        feeding = threading.Thread(target=feeder.run)
        feeding.start()
        stack.callback(feeding.join)
        stack.callback(feeder.ended.set)
        watch = stack.enter_context(watching(outlets))
        login = f"127.0.0.1:{login_port}" if at_host else ""
        yield Place(way, bootstrap, login, upstream, programs, proxy, feeder, watch)
