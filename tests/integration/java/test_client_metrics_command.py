"""kafka-client-metrics.sh against the host, and against a gateway with resources of its own.

Expectations are what the tool prints with Apache Kafka 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from integration.java.host_process import HostProcess
from integration.java.jvm import Jvm
from integration.java.main_server import Finished
from support.gateways import gateway_of

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
MAIN = "org.apache.kafka.tools.ClientMetricsCommand"
PREFIXES = "org.apache.kafka.producer.,org.apache.kafka.consumer."

Tool = Callable[..., Finished]


@pytest.fixture(scope="module", params=["host", "gateway"])
def bootstrap(
    request: pytest.FixtureRequest, host: HostProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if request.param == "host":
        yield host.bootstrap
        return
    directory = tmp_path_factory.mktemp("gateway")
    with gateway_of(host.bootstrap, directory, "gateway.client.metrics=own") as gateway:
        yield gateway.bootstrap


@pytest.fixture
def tool(jvm: Jvm, bootstrap: str) -> Tool:
    """Runs the tool with these arguments against the host or the gateway."""

    def run(*args: str) -> Finished:
        return jvm.run(MAIN, "--bootstrap-server", bootstrap, *args)

    return run


def test_altered_values_are_described(tool: Tool) -> None:
    altered = tool(
        "--alter", "--name", "altered", "--metrics", PREFIXES, "--interval", "1000", "--match", "client_id=x"
    )

    described = tool("--describe", "--name", "altered")

    assert altered.status == 0, altered.err
    assert altered.out == "Altered client metrics config for altered.\n"
    assert described.out.splitlines() == [
        "Client metrics configs for altered are:",
        "  interval.ms=1000",
        "  match=client_id=x",
        f"  metrics={PREFIXES}",
    ]


def test_an_empty_value_restores_the_default(tool: Tool) -> None:
    tool("--alter", "--name", "reset", "--interval", "1000", "--metrics", "*")

    reset = tool("--alter", "--name", "reset", "--interval", "")

    assert reset.status == 0, reset.err
    described = tool("--describe", "--name", "reset").out
    assert "  interval.ms=300000\n" in described
    assert "  metrics=*\n" in described


def test_a_deleted_name_is_no_longer_listed(tool: Tool) -> None:
    tool("--alter", "--name", "short-lived", "--metrics", "*")
    before = tool("--list")

    deleted = tool("--delete", "--name", "short-lived")

    assert "short-lived" in before.out.splitlines()
    assert deleted.status == 0, deleted.err
    assert deleted.out == "Deleted client metrics config for short-lived.\n"
    assert "short-lived" not in tool("--list").out.splitlines()


def test_a_generated_name_is_listed(tool: Tool) -> None:
    altered = tool("--alter", "--generate-name", "--metrics", "*", "--match", "client_id=nobody")

    listed = tool("--list")

    name = altered.out.removeprefix("Altered client metrics config for ").removesuffix(".\n")
    assert len(name) == 22
    assert name in listed.out.splitlines()


def test_describe_without_a_name_describes_all(tool: Tool) -> None:
    tool("--alter", "--name", "all-1", "--interval", "1000")
    tool("--alter", "--name", "all-2", "--interval", "2000")

    described = tool("--describe")

    assert described.status == 0, described.err
    assert "Client metrics configs for all-1 are:\n  interval.ms=1000\n" in described.out
    assert "Client metrics configs for all-2 are:\n  interval.ms=2000\n" in described.out


def test_an_unknown_name_is_reported(tool: Tool) -> None:
    described = tool("--describe", "--name", "never")

    assert described.status == 0, described.err
    assert "The client metric resource never doesn't exist" in described.out


def test_deleting_an_unknown_name_is_no_error(tool: Tool) -> None:
    deleted = tool("--delete", "--name", "never")

    assert deleted.status == 0, deleted.err


def test_an_interval_out_of_range_ends_with_status_1(tool: Tool) -> None:
    altered = tool("--alter", "--name", "too-often", "--interval", "99")

    assert altered.status == 1
    assert (
        "Error while executing client metrics command : Invalid value 99 for interval.ms, "
        "interval must be between 100 and 3600000 (1 hour)" in altered.said
    )


def test_an_invalid_match_ends_with_status_1(tool: Tool) -> None:
    altered = tool("--alter", "--name", "broken", "--match", "client_id=[unclosed")

    assert altered.status == 1
    assert "Illegal client matching pattern: client_id=[unclosed" in altered.said


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ((), "Command must include exactly one action"),
        (("--delete",), "A client metrics resource name must be specified with --delete."),
        (("--alter", "--metrics", "*"), "One of --name or --generate-name must be specified with --alter."),
    ],
    ids=["no action", "delete without name", "alter without name"],
)
def test_an_incomplete_command_ends_with_status_1(tool: Tool, args: tuple[str, ...], complaint: str) -> None:
    finished = tool(*args)

    assert finished.status == 1
    assert complaint in finished.said
