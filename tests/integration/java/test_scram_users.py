"""kafka-configs.sh for users, and Java clients that authenticate as them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from support.child_process import same_imports
from support.hosts import ServeProcess, serving

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
SETTINGS = (
    "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    f"sasl.enabled.mechanisms={','.join(MECHANISMS)}",
    "subscriptions.all.metrics=*",
    "subscriptions.all.interval.ms=200",
)
MODULES = {"PLAIN": "plain.PlainLoginModule"}


@pytest.fixture(scope="module")
def host(java_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    settings = [part for each in SETTINGS for part in ("--set", each)]
    with serving(tmp_path_factory.mktemp("scram") / "data", *settings, "--plugin", "stdout") as running:
        yield running


@pytest.fixture
def tools(jvm: Jvm, host: ServeProcess) -> ConsoleTools:
    return ConsoleTools(jvm, host.bootstrap)


@pytest.fixture
def guarded(jvm: Jvm, host: ServeProcess) -> ConsoleTools:
    return ConsoleTools(jvm, host.ready.split("SASL_PLAINTEXT://")[1].split(" ")[0])


def user(tools: ConsoleTools, name: str, *arguments: str) -> list[str]:
    return tools.succeed("kafka-configs", "--entity-type", "users", "--entity-name", name, *arguments)


def client_file(folder: Path, mechanism: str, name: str, password: str) -> str:
    module = MODULES.get(mechanism, "scram.ScramLoginModule")
    file = folder / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\n"
        f"sasl.mechanism={mechanism}\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.{module} required "
        f'username="{name}" password="{password}";\n'
    )
    return str(file)


def test_kafka_configs_adds_describes_and_deletes_a_user(tools: ConsoleTools) -> None:
    added = user(tools, "eve", "--alter", "--add-config", "SCRAM-SHA-256=[iterations=8192,password=x]")
    described = user(tools, "eve", "--describe")
    deleted = user(tools, "eve", "--alter", "--delete-config", "SCRAM-SHA-256")
    after = user(tools, "eve", "--describe")

    assert added == deleted == ["Completed updating config for user eve."]
    assert "SCRAM credential configs for user-principal 'eve' are SCRAM-SHA-256=iterations=8192" in described
    assert not any("SCRAM-SHA-256" in line for line in after)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_java_producer_and_consumer_authenticate(
    tools: ConsoleTools, guarded: ConsoleTools, host: ServeProcess, tmp_path: Path, mechanism: str
) -> None:
    name, topic = f"java-{mechanism}", f"java-{mechanism}"
    scram = mechanism if mechanism.startswith("SCRAM") else "SCRAM-SHA-256"
    user(tools, name, "--alter", "--add-config", f"{scram}=[password=secret]")
    file = client_file(tmp_path, mechanism, name, "secret")

    guarded.produce_lines(topic, ["one", "two"], "--command-config", file)
    lines = guarded.consume_lines(topic, 2, "--from-beginning", "--command-config", file)
    push = host.next_push(lambda row: row["context"]["principal"] == f"User:{name}")

    assert lines == ["one", "two"]
    assert push["context"]["client_software_name"] == "apache-kafka-java"


def test_a_java_client_reports_a_wrong_password(
    tools: ConsoleTools, guarded: ConsoleTools, tmp_path: Path
) -> None:
    user(tools, "mallory", "--alter", "--add-config", "SCRAM-SHA-512=[password=secret]")
    file = client_file(tmp_path, "SCRAM-SHA-512", "mallory", "guess")

    finished = guarded.run("kafka-topics", "--command-config", file, "--list")

    assert finished.status == 1
    assert "Authentication failed during authentication due to invalid credentials" in finished.said


def test_our_command_line_reads_the_file_of_a_java_client(
    tools: ConsoleTools, guarded: ConsoleTools, tmp_path: Path
) -> None:
    user(tools, "both", "--alter", "--add-config", "SCRAM-SHA-512=[password=secret]")
    file = client_file(tmp_path, "SCRAM-SHA-512", "both", "secret")

    arguments = ("users", "--bootstrap-server", guarded.bootstrap, "--command-config", file, "--list")
    ours = subprocess.run(
        [sys.executable, "-m", "odradek", *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=same_imports(),
    )

    assert "both" in ours.stdout.splitlines(), ours.stderr
