"""Java clients with exactly the rights that they need, and without one of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from support.limited_users import PASSWORD, TOPIC, LimitedUsers, limited_users

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]
CONSUMER_PROTOCOL = ("--command-property", "group.protocol=consumer")
GROUP = ("--group", "readers", "--from-beginning")
FEW = ("--num-records", "5", "--record-size", "20", "--throughput", "-1")
SLOWLY = ("--num-records", "20", "--record-size", "20", "--throughput", "4")
"""A producer that is closed before it knows its subscription pushes nothing."""
TRANSACTIONS = ("--transactional-id", "mover", "--transaction-duration-ms", "50")


@pytest.fixture(scope="module")
def users(java_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedUsers]:
    with limited_users(tmp_path_factory.mktemp("java-rights") / "data") as limited:
        yield limited


@pytest.fixture
def tools(jvm: Jvm, users: LimitedUsers) -> ConsoleTools:
    return ConsoleTools(jvm, users.guarded)


def client_file(folder: Path, name: str) -> tuple[str, str]:
    """The option of the tools that names a file with the settings of a user."""
    file = folder / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{name}" password="{PASSWORD}";\n'
    )
    return "--command-config", str(file)


def test_a_producer_and_members_of_both_protocols_need_no_more_and_push_their_telemetry(
    users: LimitedUsers, tools: ConsoleTools, tmp_path: Path
) -> None:
    writer = users.with_rights("WRITE TOPIC orders")
    tools.succeed("kafka-producer-perf-test", "--topic", TOPIC, *SLOWLY, *client_file(tmp_path, writer))
    pushes = [users.serve.next_push(lambda row: row["context"]["principal"] == f"User:{writer}")]
    read = []
    for protocol in ((), CONSUMER_PROTOCOL):
        reader = users.with_rights("READ TOPIC orders", f"READ GROUP readers{len(protocol)}")
        group = ("--group", f"readers{len(protocol)}", "--from-beginning")
        read.append(len(tools.consume_lines(TOPIC, 5, *group, *protocol, *client_file(tmp_path, reader))))
        principal = f"User:{reader}"
        pushes.append(
            users.serve.next_push(lambda row, name=principal: row["context"]["principal"] == name)  # type: ignore[misc]
        )

    assert read == [5, 5]
    assert {push["context"]["client_software_name"] for push in pushes} == {"apache-kafka-java"}


@pytest.mark.parametrize(
    ("rights", "protocol", "error"),
    [
        (("READ TOPIC orders",), (), "GroupAuthorizationException"),
        (("READ TOPIC orders",), CONSUMER_PROTOCOL, "GroupAuthorizationException"),
        (("READ GROUP readers",), (), "TopicAuthorizationException"),
        (("READ GROUP readers",), CONSUMER_PROTOCOL, "TopicAuthorizationException"),
    ],
    ids=["no group", "no group, consumer protocol", "no topic", "no topic, consumer protocol"],
)
def test_a_consumer_without_a_right_gets_the_exception_for_it(
    users: LimitedUsers,
    tools: ConsoleTools,
    tmp_path: Path,
    rights: tuple[str, ...],
    protocol: tuple[str, ...],
    error: str,
) -> None:
    file = client_file(tmp_path, users.with_rights(*rights))

    refused = tools.run(
        "kafka-console-consumer", "--topic", TOPIC, *GROUP, *protocol, *file, "--timeout-ms", "20000"
    )

    assert error in refused.said


@pytest.mark.parametrize(
    ("rights", "options", "error"),
    [
        (("DESCRIBE TOPIC orders",), (), "ClusterAuthorizationException"),
        (("WRITE TOPIC others",), (), "TopicAuthorizationException"),
        (("WRITE TOPIC orders",), TRANSACTIONS, "TransactionalIdAuthorizationException"),
        (("WRITE TRANSACTIONAL_ID mover",), TRANSACTIONS, "TopicAuthorizationException"),
    ],
    ids=[
        "no topic to write to, so no idempotence",
        "another topic",
        "no transactional id",
        "a transactional id but no topic",
    ],
)
def test_a_producer_without_a_right_gets_the_exception_for_it(
    users: LimitedUsers,
    tools: ConsoleTools,
    tmp_path: Path,
    rights: tuple[str, ...],
    options: tuple[str, ...],
    error: str,
) -> None:
    file = client_file(tmp_path, users.with_rights(*rights))

    refused = tools.run("kafka-producer-perf-test", "--topic", TOPIC, *FEW, *options, *file)

    assert error in refused.said


def test_a_transactional_producer_needs_its_id_and_its_topic(
    users: LimitedUsers, tools: ConsoleTools, tmp_path: Path
) -> None:
    file = client_file(tmp_path, users.with_rights("WRITE TOPIC orders", "WRITE TRANSACTIONAL_ID mover"))

    said = tools.succeed("kafka-producer-perf-test", "--topic", TOPIC, *FEW, *TRANSACTIONS, *file)

    assert any(line.startswith("5 records sent") for line in said)
