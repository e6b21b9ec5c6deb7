"""Where clients live: a host, or a gateway before one; with a console and two Prometheus that watch it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from contrib.capture.kafka_node import kafka_node
from contrib.capture.ports import free_ports, free_range
from contrib.grafana.promql import INTERVAL_S
from contrib.grafana.rules import alert_rules
from contrib.prometheus.prometheus import PROMETHEUS

from matrix.hurry import FACTOR, hurried
from matrix.watch import Watch, console_rings, prometheus_rings, watching
from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError
from odradek.client.resources import ConfigChange, ConfigResource, NewTopic
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.wire.config_resource import ResourceType
from support.child_process import same_imports
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.hosts import ServeProcess
from support.prometheus_server import prometheus_server

TELEMETRY: Final = "client_telemetry"
"""The topic of a gateway's clients, at its cluster."""
PARTITIONS: Final = 4
PATIENCE: Final = 5
"""Tries to create a topic."""
SESSION_MS: Final = 6_000
EACH_S: Final = 0.05
"""Between two records of the feeder for one topic."""
PROMETHEUS_CONFIG: Final = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: ["{rules}"]
scrape_configs: [{{job_name: odradek, static_configs: [{{targets: {targets}}}]}}]
"""
WAYS: Final = ("host", "gateway", "kafka")
"""A host; a gateway before a host; a gateway before Apache Kafka."""
SESSIONS: Final = (
    "group.initial.rebalance.delay.ms=300",
    *(f"group.consumer.{each}session.timeout.ms={SESSION_MS}" for each in ("min.", "")),
    *(f"group.consumer.{each}heartbeat.interval.ms={SESSION_MS // 4}" for each in ("min.", "")),
)


class OurProgram(ServeProcess):
    """A program of Odradek that can start again with the same ports."""

    def __init__(self, command: str, *arguments: str, ready_start: str = "odradek ready ") -> None:
        self.command, self.ready_start, self.arguments = command, ready_start, arguments
        super().__init__(*arguments, env=same_imports())

    def again(self) -> None:
        """Start after it was stopped."""
        OurProgram.__init__(self, self.command, *self.arguments, ready_start=self.ready_start)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.terminate()


def options(*settings: str) -> list[str]:
    return [each for setting in settings for each in ("--set", setting)]


@dataclass
class Feeder:
    """Produces to each topic that is fed, 20 times a second."""

    bootstrap: str
    fed: dict[str, int] = field(default_factory=dict)
    """Records at a time, by topic."""
    ended: threading.Event = field(default_factory=threading.Event)

    def producer(self) -> Any:
        import confluent_kafka

        return confluent_kafka.Producer(
            {"bootstrap.servers": self.bootstrap, "client.id": "feeder.1", "linger.ms": 20, "log_level": 0}
        )

    def run(self) -> None:
        producer = self.producer()
        while not self.ended.wait(EACH_S):
            for topic, records in list(self.fed.items()):
                for _ in range(records):
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


@contextmanager
def feeding(bootstrap: str) -> Iterator[Feeder]:
    """A feeder in a thread."""
    feeder = Feeder(bootstrap)
    thread = threading.Thread(target=feeder.run)
    thread.start()
    try:
        yield feeder
    finally:
        feeder.ended.set()
        thread.join()


@dataclass
class Place:
    """A running place."""

    way: str
    bootstrap: str
    login: str
    """The address that wants a password."""
    upstream: str
    """The address of the host, past the gateway."""
    programs: dict[str, OurProgram]
    proxy: CuttingProxy | None
    """Between the gateway and the host."""
    feeder: Feeder
    watch: Watch

    def create_topic(self, name: str) -> None:
        for _ in range(PATIENCE):
            try:
                create_topic(self.upstream, name, PARTITIONS)
            except ClientError:  # many lives begin at once
                time.sleep(1)
            else:
                break

    def limit(self, client_id: str, **quotas: float | None) -> None:
        """Set quotas of a client id; None removes one."""
        with AdminClient(self.upstream) as admin:
            admin.alter_client_quotas({ClientQuotaEntity(client_id=client_id): quotas})

    def subscribe(self, metrics: str) -> None:
        """Add a subscription of all clients, beside the one of the settings."""
        resource = ConfigResource(ResourceType.CLIENT_METRICS, "more")
        with AdminClient(self.upstream) as admin:
            admin.incremental_alter_configs({resource: [ConfigChange("metrics", metrics)]})

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """What clients send to the place meanwhile waits for an answer."""
        process = self.programs["host" if self.way == "host" else "gateway"].process
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def restart(self, program: str, down_s: float) -> None:
        """Stop a program in order, and start it again."""
        self.programs[program].terminate()
        time.sleep(down_s)
        self.programs[program].again()


@dataclass
class Site:
    """Starts the programs of a place, and stops them when it is closed."""

    folder: Path
    stack: ExitStack
    programs: dict[str, OurProgram] = field(default_factory=dict)

    def run(self, name: str, command: str, *arguments: str, **more: str) -> OurProgram:
        """Start a program of Odradek."""
        self.programs[name] = OurProgram(command, *arguments, **more)
        self.stack.callback(self.programs[name].stop)
        return self.programs[name]

    def prometheus(self, name: str, scraped: Sequence[int] = ()) -> str:
        """The URL of a Prometheus with the shipped rules, hurried."""
        (port,), folder = free_ports(1), self.folder / name
        folder.mkdir()
        rules, config = folder / "rules.yml", folder / "prometheus.yml"
        rules.write_text(hurried(alert_rules(INTERVAL_S)))
        targets = [f"127.0.0.1:{each}" for each in scraped]
        config.write_text(PROMETHEUS_CONFIG.format(rules=rules, targets=targets))
        flags = ("--web.enable-remote-write-receiver", f"--query.lookback-delta={300 // FACTOR}s")
        server = prometheus_server(PROMETHEUS.path(), config, port, folder, *flags)
        return self.stack.enter_context(server).url

    def telemetry(self, name: str, scraped: int, remote_url: str) -> list[str]:
        """The settings of a program that takes pushes, observes, and is watched."""
        return [
            f"data.dir={self.folder / name}",
            "subscriptions.all.metrics=*",
            "subscriptions.all.interval.ms=1000",
            f"lag.export.interval.ms={30_000 // FACTOR}",
            f"plugins.prometheus.listener=http://127.0.0.1:{scraped}",
            f"plugins.prometheus.linger.ms={300_000 // FACTOR}",
            f"plugins.prometheus.totals.file={self.folder / f'{name}-scrape.db'}",
            f"plugins.prometheus.remote_write.url={remote_url}/api/v1/write",
            f"plugins.prometheus.remote_write.totals.file={self.folder / f'{name}-remote.db'}",
            f"plugins.prometheus.remote_write.resend.ms={60_000 // FACTOR}",
        ]

    def add_user(self) -> str:
        """A properties file of a user who may log in at the host, which does not run yet."""
        password, properties = self.folder / "password", self.folder / "gateway.properties"
        password.write_text("right\n")
        users = ("users", "--data-dir", str(self.folder / "host"), "--add", "gateway")
        command = (sys.executable, "-m", "odradek", *users, "--password-file", str(password))
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        properties.write_text(
            "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=gateway\nsasl.password=right\n"
        )
        return str(properties)

    def gateway(self, name: str, upstream: str, cluster: str, scraped: int, written: str, *more: str) -> str:
        """Start a gateway that writes pushes to a topic of its cluster; the address for clients.

        Args:
            upstream: The address that it passes connections to.
            cluster: The address of the same cluster for its own records.
        """
        address = f"127.0.0.1:{free_range(2)}"
        settings = [
            f"listeners=PLAINTEXT://{address}",
            "gateway.nodes=1",
            "gateway.lag=groups",
            f"plugins.kafka.bootstrap.servers={cluster}",
            f"plugins.kafka.topic={TELEMETRY}",
            *self.telemetry(name, scraped, written),
            *more,
        ]
        self.run(name, "gateway", "--upstream", upstream, *options(*settings))
        return address

    def kafka(self) -> str:
        """Start a node of Apache Kafka without telemetry; its address."""
        settings = ("auto.create.topics.enable=false", *SESSIONS)
        node = self.stack.enter_context(kafka_node(reporters="", overrides=settings))
        return f"127.0.0.1:{node.port}"


def create_topic(bootstrap: str, name: str, partitions: int) -> None:
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(name=name, partitions=partitions, replication_factor=1)])


@contextmanager
def place(way: str, folder: Path) -> Iterator[Place]:
    """Start a ``host``, or a gateway before a host or before Apache Kafka, with everything that watches."""
    folder.mkdir(parents=True)
    port, login_port, scraped, login_scraped = free_ports(4)
    upstream, login = f"127.0.0.1:{port}", f"127.0.0.1:{login_port}"
    with ExitStack() as stack:
        site = Site(folder, stack)
        scraping = site.prometheus("scrape", [scraped, login_scraped] if way == "gateway" else [scraped])
        written = site.prometheus("remote")
        common = [
            f"listeners=PLAINTEXT://{upstream},SASL_PLAINTEXT://{login}",
            "sasl.enabled.mechanisms=PLAIN",
            "node.id=1",
            "auto.create.topics.enable=false",
            *SESSIONS,
        ]
        proxy, bootstrap, topic = None, upstream, "__client_telemetry"
        if way == "host":
            of_pushes = ["telemetry.observe=silent", *site.telemetry("host", scraped, written)]
            site.run("host", "serve", *options(*common, *of_pushes))
        elif way == "gateway":
            topic, properties = TELEMETRY, site.add_user()
            proxy, proxy_port = stack.enter_context(cutting_proxy(port))
            past = f"advertised.listeners=PLAINTEXT://127.0.0.1:{proxy_port},SASL_PLAINTEXT://{login}"
            silent = ["telemetry.durability=memory", f"data.dir={folder / 'host'}"]
            site.run("host", "serve", *options(*common, past, *silent))
            create_topic(upstream, TELEMETRY, 1)
            bootstrap = site.gateway("gateway", f"127.0.0.1:{proxy_port}", upstream, scraped, written)
            logs_in = f"gateway.upstream.command.config={properties}"
            login = site.gateway("login", login, upstream, login_scraped, written, logs_in)
        else:
            topic, upstream, login = TELEMETRY, site.kafka(), ""
            create_topic(upstream, TELEMETRY, 1)
            bootstrap = site.gateway("gateway", upstream, upstream, scraped, written)
        reading = ("--bootstrap-server", upstream, "--topic", topic, "--listen", "127.0.0.1:0")
        console = site.run("console", "console", *reading, ready_start="odradek console ready ")
        outlets = {
            "console": partial(console_rings, console.ready.split()[-1].rstrip("/")),
            "scrape": partial(prometheus_rings, "scrape", scraping),
            "remote write": partial(prometheus_rings, "remote write", written),
        }
        feeder = stack.enter_context(feeding(upstream))
        watch = stack.enter_context(watching(outlets))
        yield Place(way, bootstrap, login, upstream, site.programs, proxy, feeder, watch)
