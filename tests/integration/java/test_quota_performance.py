"""kafka-producer-perf-test and kafka-consumer-perf-test under quotas by user and by client id."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from odradek.plugin.client_quota import ClientQuotaEntity
from support.hosts import serving
from support.progress import Progress

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

MEGABYTE = 1_000_000
RECORD_BYTES = 10_000
PRODUCED, CONSUMED = 8_000, 6_500
"""Enough records for half a minute or more, after the initial burst. The lines of the producer contain bursts
that move on a busy machine: it runs for longer, so that they weigh less."""
SKIPPED_LINES = 2
LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
ENTITIES = {"user": ClientQuotaEntity(user="alice"), "client-id": ClientQuotaEntity(client_id="noisy")}
LOGIN = (
    "security.protocol=SASL_PLAINTEXT\n"
    "sasl.mechanism=SCRAM-SHA-256\n"
    "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="alice" password="secret";\n'
)
TIME = "%Y-%m-%d %H:%M:%S:%f"
LINE = re.compile(r"(\d+) records sent, ([\d.]+) records/sec")


def produce(tools: ConsoleTools, topic: str, count: int, *args: str) -> list[str]:
    sizes = ("--num-records", str(count), "--record-size", str(RECORD_BYTES), "--throughput", "-1")
    batches = ("--command-property", "batch.size=100000", "linger.ms=5")
    return tools.succeed("kafka-producer-perf-test", "--topic", topic, *sizes, *batches, *args, timeout_s=200)


def produced(tools: ConsoleTools, who: str, *args: str) -> float:
    """Bytes per second, from the tool's lines about every five seconds or a little more.

    Every other line contains a burst: what was allowed at once has left the windows. With Apache Kafka the
    tool prints the same.
    """
    lines = produce(tools, f"from-{who}", PRODUCED, *args)[:-1]
    found = [(int(match[1]), float(match[2])) for line in lines if (match := LINE.match(line))]
    late = found[SKIPPED_LINES : len(found) // 2 * 2]
    assert len(late) > 3
    return RECORD_BYTES * sum(count for count, _ in late) / sum(count / rate for count, rate in late)


def consumed(tools: ConsoleTools, who: str, *args: str) -> float:
    """Bytes per second, from the tool's lines about every second with data."""
    options = ("--num-records", str(CONSUMED), "--fetch-size", "200000", "--group", f"group-{who}")
    details = ("--show-detailed-stats", "--reporting-interval", "500", "--hide-header", "--timeout", "60000")
    lines = tools.succeed(
        "kafka-consumer-perf-test", "--topic", "filled", *options, *details, *args, timeout_s=200
    )
    rows = [line.split(", ") for line in lines if line.count(", ") > 5]
    times = [datetime.strptime(f"{row[0]} +0000", f"{TIME} %z").timestamp() for row in rows]
    return Progress(
        [(at, RECORD_BYTES * int(row[4])) for at, row in zip(times, rows, strict=True)]
    ).rate_between_bursts()


@pytest.fixture(scope="module")
def rates(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """The output of all tools, which run at the same time: each has its own quota."""
    folder = tmp_path_factory.mktemp("performance")
    (folder / "alice.properties").write_text(LOGIN)
    with serving(folder / "data", "--set", LISTENERS) as serve, ThreadPoolExecutor(4) as pool:
        plain = ConsoleTools(jvm.apart, serve.bootstrap)
        guarded = ConsoleTools(jvm.apart, serve.ready.split("SASL_PLAINTEXT://")[1].split(" ")[0])
        prepare(serve.bootstrap, plain)
        by_user = ("--command-config", str(folder / "alice.properties"))
        by_id = ("--command-property", "client.id=noisy")
        runs = {
            f"{verb.__name__} by {who}": pool.submit(partial(verb, tools, who, *args))
            for verb in (produced, consumed)
            for who, tools, args in (("user", guarded, by_user), ("client-id", plain, by_id))
        }
        found = {name: run.result() for name, run in runs.items()}
    print(*(f"\n{name}: {rate:,.0f} bytes/s" for name, rate in found.items()))
    return found


def prepare(bootstrap: str, plain: ConsoleTools) -> None:
    """A user, topics, records to read, and the quotas."""
    password = ("--add-config", "SCRAM-SHA-256=[password=secret]")
    plain.succeed("kafka-configs", "--alter", "--entity-type", "users", "--entity-name", "alice", *password)
    limits: dict[str, float | None] = {"producer_byte_rate": MEGABYTE, "consumer_byte_rate": MEGABYTE}
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(name=name, partitions=1) for name in ("filled", "from-user")])
        admin.create_topics([NewTopic(name="from-client-id", partitions=1)])
        produce(plain, "filled", CONSUMED)
        admin.alter_client_quotas(dict.fromkeys(ENTITIES.values(), limits))


@pytest.mark.parametrize("who", ENTITIES)
@pytest.mark.parametrize("what", ["produced", "consumed"])
def test_a_java_client_converges_to_its_quota(rates: dict[str, float], what: str, who: str) -> None:
    assert rates[f"{what} by {who}"] == pytest.approx(MEGABYTE, rel=0.05)
