"""Connection limits over real sockets, changed while the host runs; and a storm of connections."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.quota.connection_rates import ConnectionRates
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.charges import Charges, watched_connections
from support.data_requests import produce_request
from support.hosts import ThreadedHost, about_itself, running_host, serving
from support.waiting import wait_until
from support.wire_client import WireClient

API_VERSIONS = bytes.fromhex("0000000e 0012 0000 00000001 0004 74657374".replace(" ", ""))
PLAINTEXT, INTERNAL = 0, 1
BOTH = "listeners=PLAINTEXT://127.0.0.1:0,PLAINTEXT_INTERNAL://127.0.0.1:0"
SHORT_WINDOWS = "quota.window.num=2"
RATE = "max.connection.creation.rate"
WORKERS = 6
PATIENCE_S = 30


def port(host: ThreadedHost, listener: int = PLAINTEXT) -> int:
    return host.host.listeners[listener].bound_port


class Client:
    """A connection with the answer to its request."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE_S, (source, 0))
        with contextlib.suppress(OSError):  # it may be closed already
            self.socket.sendall(API_VERSIONS)

    def outcome(self, timeout_s: float = PATIENCE_S) -> str:
        """Whether the connection was answered, was closed, or still waits."""
        self.socket.settimeout(timeout_s)
        try:
            return "answered" if self.socket.recv(65_536) else "closed"
        except TimeoutError:
            return "waiting"
        except ConnectionError:
            return "closed"

    def close(self) -> None:
        self.socket.close()


class Storm(threading.Thread):
    """Connects as fast as the host allows, several at once, until told to stop."""

    def __init__(
        self, host: ThreadedHost, seconds: float, listener: int = PLAINTEXT, source: str = "127.0.0.1"
    ) -> None:
        super().__init__(daemon=True)
        self.host, self.listener, self.source = host, listener, source
        self.begin_s = time.monotonic()
        self.until_s = self.begin_s + seconds
        self.answered = 0
        self.start()

    def run(self) -> None:
        workers = [threading.Thread(target=self.connect, daemon=True) for _ in range(WORKERS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def connect(self) -> None:
        while time.monotonic() < self.until_s:
            with contextlib.suppress(OSError):
                client = Client(port(self.host, self.listener), self.source)
                if client.outcome(max(self.until_s - time.monotonic(), 0.01)) == "answered":
                    self.answered += 1
                client.close()

    def rate(self) -> float:
        """Answered connections per second."""
        self.join()
        return self.answered / (self.until_s - self.begin_s)

    def end(self) -> None:
        """End before the time is over."""
        self.until_s = time.monotonic()

    def has_used(self, charges: Charges, above: float, below: float) -> bool:
        """Whether every connection but the last of each worker was answered, at the rate of the quota."""
        assert charges.wrong_ms == []
        assert self.rate() <= (1 + above) * charges.quota
        assert self.answered >= charges.progress.total - WORKERS
        return charges.progress.rates().hold_to(charges.quota, above, below)


@pytest.fixture
def clients() -> Iterator[list[Client]]:
    opened: list[Client] = []
    yield opened
    for client in opened:
        client.close()


def reconfigure(host: ThreadedHost, key: str, value: str, listener: str | None = None) -> None:
    host.call(lambda: host.host.broker.connection_quotas.reconfigure(key, value, listener))


def rates_of(host: ThreadedHost) -> ConnectionRates:
    return host.host.broker.connection_quotas.rates


def blocked_ns(host: ThreadedHost) -> float:
    """The time for which connections to the listener have waited before they were served."""
    rates = rates_of(host)
    return rates.listeners["PLAINTEXT"].blocked.measure(rates.clock.monotonic_ms())


def total(host: ThreadedHost) -> int:
    return int(host.call(lambda: host.host.broker.connection_quotas.total))


def connect(host: ThreadedHost, clients: list[Client], count: int, listener: int = PLAINTEXT) -> list[str]:
    """Open this many more connections; return their outcomes."""
    added = [Client(port(host, listener)) for _ in range(count)]
    clients += added
    return [client.outcome() for client in added]


def test_connections_per_address_are_limited(tmp_path: Path, clients: list[Client]) -> None:
    with running_host(tmp_path) as host:
        reconfigure(host, "max.connections.per.ip", "5")

        first = connect(host, clients, 6)
        clients.pop(0).close()
        wait_until(lambda: total(host) == 4, lambda: total(host))
        again = connect(host, clients, 1)

    assert first == ["answered"] * 5 + ["closed"]
    assert again == ["answered"]


def test_a_host_name_can_have_its_own_limit(tmp_path: Path, clients: list[Client]) -> None:
    with running_host(tmp_path) as host:
        reconfigure(host, "max.connections.per.ip", "5")
        reconfigure(host, "max.connections.per.ip.overrides", "localhost:7")
        quotas = host.host.broker.connection_quotas
        wait_until(lambda: "127.0.0.1" in quotas.per_ip_overrides, "localhost is not resolved")

        outcomes = connect(host, clients, 8)

    assert outcomes == ["answered"] * 7 + ["closed"]


def test_connections_per_broker_are_limited(tmp_path: Path, clients: list[Client]) -> None:
    with running_host(tmp_path) as host:
        reconfigure(host, "max.connections", "5")

        first = connect(host, clients, 5)
        late = Client(port(host))
        before = late.outcome(0.2)
        clients.append(late)
        clients.pop(0).close()
        after = late.outcome()

    assert first == ["answered"] * 5
    assert (before, after) == ("waiting", "answered")


def test_listeners_have_limits_and_brokers_displace_clients(tmp_path: Path, clients: list[Client]) -> None:
    limits = [f"listener.name.{name}.max.connections=5" for name in ("plaintext", "plaintext_internal")]
    with running_host(tmp_path, BOTH, "max.connections=10", *limits) as host:
        first = connect(host, clients, 5, INTERNAL) + connect(host, clients, 5, PLAINTEXT)
        late = Client(port(host, INTERNAL))
        before = late.outcome(0.2)
        clients.pop(0).close()
        after = late.outcome()
        internal = [*clients[:4], late]

        reconfigure(host, "max.connections", "7", "PLAINTEXT")
        more = connect(host, clients, 2, PLAINTEXT)
        wait_until(lambda: total(host) == 10, lambda: total(host))
        left = [client.outcome(0.05) for client in internal]
        clients.append(late)

    assert first == ["answered"] * 10
    assert (before, after) == ("waiting", "answered")
    assert more == ["answered"] * 2
    assert sorted(left[:4]) == ["closed"] * 2 + ["waiting"] * 2
    assert left[4] == "waiting"  # the most recently used one stays


@pytest.mark.slow
@pytest.mark.nightly
def test_the_broker_has_a_connection_rate(tmp_path: Path) -> None:
    with running_host(tmp_path, BOTH, SHORT_WINDOWS) as host:
        reconfigure(host, f"listener.name.plaintext.{RATE}", "2147483647")
        reconfigure(host, RATE, "9")

        with watched_connections(rates_of(host), 9) as charges:
            held, free = Storm(host, 13, INTERNAL), Storm(host, 60, PLAINTEXT)
            wait_until(lambda: free.answered >= 300, lambda: free.answered)
            free.end()
            assert held.has_used(charges, above=0.2, below=1 / 9), charges.progress.rates()
            free.join()


@pytest.mark.slow
@pytest.mark.nightly
def test_each_listener_has_a_connection_rate(tmp_path: Path) -> None:
    with running_host(tmp_path, BOTH, SHORT_WINDOWS) as host:
        reconfigure(host, RATE, "4", "PLAINTEXT")
        reconfigure(host, RATE, "4", "PLAINTEXT_INTERNAL")

        with (
            watched_connections(rates_of(host), 4, "PLAINTEXT") as plain,
            watched_connections(rates_of(host), 4, "PLAINTEXT_INTERNAL") as internal,
        ):
            for storm, charges in [
                (Storm(host, 13, PLAINTEXT), plain),
                (Storm(host, 13, INTERNAL), internal),
            ]:
                assert storm.has_used(charges, above=0.2, below=0.25), charges.progress.rates()
            reconfigure(host, RATE, "12", "PLAINTEXT")
            plain.raised_to(12)
            later = Storm(host, 13, PLAINTEXT)
            assert later.has_used(plain, above=0.2, below=1 / 6), plain.progress.rates()


@pytest.mark.slow
def test_each_address_has_a_connection_rate(tmp_path: Path) -> None:
    with running_host(tmp_path, SHORT_WINDOWS) as host:
        quotas = host.host.broker.connection_quotas
        with watched_connections(rates_of(host), 10, "127.0.0.1") as charges:
            host.call(lambda: quotas.update_ip_rate(None, 10))
            first = Storm(host, 13)
            assert first.has_used(charges, above=0.2, below=0.2), charges.progress.rates()
            host.call(lambda: quotas.update_ip_rate("127.0.0.1", 18))
            charges.raised_to(18)
            second = Storm(host, 13)
            assert second.has_used(charges, above=0.2, below=4 / 18), charges.progress.rates()


def test_a_storm_of_one_address_is_limited_and_another_connects_at_full_speed(
    tmp_path: Path,
) -> None:
    with running_host(tmp_path, SHORT_WINDOWS) as host:
        host.call(lambda: host.host.broker.connection_quotas.update_ip_rate("127.0.0.2", 20))

        with watched_connections(rates_of(host), 20, "127.0.0.2") as charges:
            storm = Storm(host, 60, source="127.0.0.2")
            outcomes = []
            for _ in range(300):
                client = Client(port(host))
                outcomes.append(client.outcome())
                client.close()
            waited = host.call(lambda: blocked_ns(host))
            during = storm.is_alive()
            wait_until(lambda: storm.answered >= 80, lambda: storm.answered)
            storm.end()
            # The storm shares its interpreter with the test, so the machine decides how much it uses. The
            # delays that the quota gives are compared with Kafka's in any case.
            assert storm.has_used(charges, above=0.5, below=1), charges.progress.rates()

    assert outcomes == ["answered"] * 300
    assert waited == 0
    assert during


def test_configured_limits_apply_from_the_start(tmp_path: Path, clients: list[Client]) -> None:
    overrides = "max.connections.per.ip.overrides=127.0.0.1:2"
    with running_host(tmp_path, "max.connections.per.ip=0", overrides) as host:
        outcomes = connect(host, clients, 3)

    assert outcomes == ["answered"] * 2 + ["closed"]


def test_a_host_stops_while_a_connection_waits(tmp_path: Path, clients: list[Client]) -> None:
    with running_host(tmp_path, "max.connections=1") as host:
        connect(host, clients, 1)
        late = Client(port(host))
        clients.append(late)
        before = late.outcome(0.2)
    after = late.outcome()

    assert (before, after) == ("waiting", "closed")


@pytest.mark.ci
def test_a_host_process_enforces_the_limits(tmp_path: Path, clients: list[Client]) -> None:
    with serving(tmp_path, "--set", "max.connections=2") as serve:
        address = int(serve.bootstrap.rpartition(":")[2])
        clients += [Client(address) for _ in range(4)]
        before = [client.outcome(PATIENCE_S if index < 2 else 0.2) for index, client in enumerate(clients)]
        clients.pop(0).close()
        clients.pop(0).close()
        after = [client.outcome() for client in clients]

    assert before == ["answered"] * 2 + ["waiting"] * 2
    assert after == ["answered"] * 2


@pytest.mark.slow
def test_a_client_that_never_reads_its_answers_is_closed(tmp_path: Path) -> None:
    with running_host(tmp_path, "connections.max.idle.ms=1000") as host:
        client = Client(port(host))
        client.socket.settimeout(1)
        with contextlib.suppress(OSError):  # the buffer is full, or the connection is closed already
            while True:
                client.socket.sendall(API_VERSIONS * 500)

        wait_until(lambda: total(host) == 0, lambda: total(host))
        client.close()


@pytest.mark.ci
def test_a_host_with_few_descriptors_keeps_some_for_its_files(tmp_path: Path, clients: list[Client]) -> None:
    descriptors, share, topics = 256, 112, 100
    with serving(tmp_path, descriptors=descriptors) as serve:
        host, _, port_text = serve.bootstrap.rpartition(":")
        producer = WireClient((host, int(port_text)))
        producer.introduce()
        clients += [Client(int(port_text)) for _ in range(2 * descriptors)]
        served = {client.outcome() for client in clients[: share - 1]}
        beyond = [client.outcome(0.1) for client in clients[share - 1 : share + 2]]

        codes = {produced(producer, f"topic-{number}") for number in range(topics)}
        for client in clients[: share - 1]:
            client.close()
        late = {client.outcome() for client in clients[share - 1 : 2 * (share - 1)]}
        producer.socket.close()

    assert served == late == {"answered"}
    assert beyond == ["waiting"] * 3
    assert codes == {0}
    wrong = ("ERROR", "WARNING", "open files")
    assert not [line for line in about_itself(serve.errors) if any(word in line for word in wrong)]


def produced(client: WireClient, topic: str) -> int:
    """The error code of a record for a new topic."""
    client.send(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    request = produce_request(topic, build_batch([Record(None, b"value", 0)]))
    return int(client.send(request, 9).responses[0].partition_responses[0].error_code)
