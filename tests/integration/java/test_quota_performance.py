"""kafka-producer-perf-test and kafka-consumer-perf-test under quotas by user and by client id."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from odradek.plugin.client_quota import ClientQuotaEntity
from support.charges import Charges, watched
from support.hosts import running_host

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

MEGABYTE = 1_000_000
RECORD_BYTES = 10_000
RECORDS = 5_500
"""Enough for three quarters of a minute after the initial burst, which is four bursts."""
LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
ENTITIES = {"user": ClientQuotaEntity(user="alice"), "client-id": ClientQuotaEntity(client_id="noisy")}
LOGIN = (
    "security.protocol=SASL_PLAINTEXT\n"
    "sasl.mechanism=SCRAM-SHA-256\n"
    "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="alice" password="secret";\n'
)


def produce(tools: ConsoleTools, topic: str, count: int, *args: str) -> None:
    sizes = ("--num-records", str(count), "--record-size", str(RECORD_BYTES), "--throughput", "-1")
    batches = ("--command-property", "batch.size=100000", "linger.ms=5")
    lines = tools.succeed(
        "kafka-producer-perf-test", "--topic", topic, *sizes, *batches, *args, timeout_s=200
    )
    assert lines[-1].startswith(f"{count} records sent")


def produced(tools: ConsoleTools, who: str, *args: str) -> None:
    produce(tools, f"from-{who}", RECORDS, *args)


def consumed(tools: ConsoleTools, who: str, *args: str) -> None:
    sizes = ("--num-records", str(RECORDS), "--fetch-size", "200000", "--group", f"group-{who}")
    options = (*sizes, "--hide-header", "--timeout", "60000", *args)
    lines = tools.succeed("kafka-consumer-perf-test", "--topic", "filled", *options, timeout_s=200)
    assert int(lines[-1].split(", ")[4]) == RECORDS


@pytest.fixture(scope="module")
def charges(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Charges]:
    """The charges of all tools, which run at the same time: each has its own quota."""
    folder = tmp_path_factory.mktemp("performance")
    (folder / "alice.properties").write_text(LOGIN)
    with (
        running_host(folder / "data", LISTENERS) as host,
        ThreadPoolExecutor(4) as pool,
        ExitStack() as stack,
    ):
        plain = ConsoleTools(jvm.apart, host.bootstrap)
        guarded = ConsoleTools(jvm.apart, f"127.0.0.1:{host.host.listeners[1].bound_port}")
        prepare(host.bootstrap, plain)
        watch = {
            "user": (guarded, {"user": "alice"}, ("--command-config", str(folder / "alice.properties"))),
            "client-id": (plain, {"client_id": "noisy"}, ("--command-property", "client.id=noisy")),
        }
        quotas = host.host.broker.quotas
        found, runs = {}, []
        for who, (tools, client, args) in watch.items():
            for run, manager in ((produced, quotas.produce), (consumed, quotas.fetch)):
                found[f"{run.__name__} by {who}"] = stack.enter_context(watched(manager, MEGABYTE, **client))
                runs.append(pool.submit(run, tools, who, *args))
        for each in runs:
            each.result()
    return found


def prepare(bootstrap: str, plain: ConsoleTools) -> None:
    """A user, topics, records to read, and the quotas."""
    password = ("--add-config", "SCRAM-SHA-256=[password=secret]")
    plain.succeed("kafka-configs", "--alter", "--entity-type", "users", "--entity-name", "alice", *password)
    limits: dict[str, float | None] = {"producer_byte_rate": MEGABYTE, "consumer_byte_rate": MEGABYTE}
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(name=name, partitions=1) for name in ("filled", "from-user")])
        admin.create_topics([NewTopic(name="from-client-id", partitions=1)])
        produce(plain, "filled", RECORDS)
        admin.alter_client_quotas(dict.fromkeys(ENTITIES.values(), limits))


@pytest.mark.parametrize("who", ENTITIES)
@pytest.mark.parametrize("what", ["produced", "consumed"])
def test_a_java_client_converges_to_its_quota(charges: dict[str, Charges], what: str, who: str) -> None:
    found = charges[f"{what} by {who}"]

    assert found.progress.total == pytest.approx(RECORDS * RECORD_BYTES, rel=0.02)
    assert found.wrong_ms == []
    assert found.progress.lag_s() < 0.25  # the host reads its requests again
    assert found.progress.rates().hold_to(MEGABYTE), found.progress.rates()
