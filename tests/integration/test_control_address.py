"""The control port and the advertised address of a host in a container: open to others, with a token."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.control import Control
from support.hosts import ServeProcess
from support.mapped_port import mapped_to

pytestmark = pytest.mark.ci

LISTENERS = "advertised.listeners"
TOKEN = "a secret"
ENVIRONMENT = {"ODRADEK_CONTROL_TOKEN": TOKEN}
# As the image starts it, with ports that are free. No client can reach the advertised port.
IN_A_CONTAINER = (
    *("--ephemeral", "--control", "0.0.0.0:0"),
    *("--set", "listeners=PLAINTEXT://0.0.0.0:0", "--set", "advertised.listeners=PLAINTEXT://127.0.0.1:1"),
)
confluent_kafka = pytest.importorskip("confluent_kafka")


@pytest.fixture(scope="module")
def serve() -> Iterator[ServeProcess]:
    process = ServeProcess(*IN_A_CONTAINER, env=ENVIRONMENT)
    yield process
    assert process.terminate() == 0


@pytest.fixture
def control(serve: ServeProcess) -> Control:
    control = Control(serve, TOKEN)
    assert control.address.startswith("0.0.0.0:")
    return control


@pytest.mark.parametrize(
    ("authorization", "status"),
    [
        (None, 401),
        ("Bearer other", 401),
        ("Bearer", 401),
        (f"Basic {TOKEN}", 401),
        ("Bearer \xff", 401),
        (f"Bearer {TOKEN}", 200),
        (f"bearer  {TOKEN}", 200),
    ],
)
def test_only_requests_with_the_token_are_served(
    serve: ServeProcess, authorization: str | None, status: int
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}

    found, answer = Control(serve).send("topics/names", Host="tests.internal:9093", **headers)

    assert found == status
    expected = {"error": "expected the header Authorization: Bearer TOKEN with ODRADEK_CONTROL_TOKEN"}
    assert answer == (expected if status == 401 else [])


def test_a_browser_is_refused_with_the_token_too(control: Control) -> None:
    assert control.send("topics/names", Origin="http://example.org")[0] == 403


def test_the_listing_needs_the_token_too(serve: ServeProcess) -> None:
    assert Control(serve).send("", method="GET")[0] == 401


def test_clients_use_the_mapped_port_once_it_is_advertised(serve: ServeProcess, control: Control) -> None:
    bound = int(serve.bootstrap.rpartition(":")[2])
    assert control.send("", method="GET")[1]["bootstrap"] == "127.0.0.1:1"
    with mapped_to(bound) as port:
        control.call("advertise", host="127.0.0.1", port=port)

        for topic in ("before", "after"):
            producer = confluent_kafka.Producer({"bootstrap.servers": f"127.0.0.1:{port}"})
            producer.produce(topic, b"one")
            assert producer.flush(20) == 0
            control.call("restart")

        assert control.send("", method="GET")[1]["bootstrap"] == f"127.0.0.1:{port}"
    assert [row["value"] for row in control.call("topics/records", name="after")] == ["one"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            '{"host": "h", "port": 9, "listener": "TLS"}',
            "advertised.listeners: no listener has the name 'TLS'",
        ),
        ('{"host": "", "port": 9}', "expected a host and a port from 1 to 65535, found ':9'"),
        ('{"host": "h", "port": 0}', "expected a host and a port from 1 to 65535, found 'h:0'"),
    ],
)
def test_an_address_that_no_client_can_use_is_refused(control: Control, given: str, expected: str) -> None:
    status, answer = control.send("advertise", given)

    assert (status, answer["error"]) == (400, expected)


def test_the_loopback_address_needs_no_token_but_uses_one_that_is_set() -> None:
    serve = ServeProcess("--ephemeral", "--control", "127.0.0.1:0", env=ENVIRONMENT)

    statuses = [Control(serve, token).send("topics/names")[0] for token in (None, TOKEN)]

    assert serve.terminate() == 0
    assert statuses == [401, 200]


REACHED = "{} can be reached from other machines: set the environment variable ODRADEK_CONTROL_TOKEN to "
REACHED += "a secret that each request must have"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("0.0.0.0:0", REACHED),
        ("[::]:0", REACHED),
        ("example.org:0", REACHED),
        ("9093", "expected HOST:PORT, found '{}'"),
        (":9093", "expected HOST:PORT, found '{}'"),
        ("127.0.0.1:99999", "expected HOST:PORT, found '{}'"),
    ],
)
def test_an_address_that_cannot_be_used_is_one_line(address: str, expected: str) -> None:
    command = [sys.executable, "-m", "odradek", "serve", "--ephemeral", "--control", address]
    environment = {**os.environ, "ODRADEK_CONTROL_TOKEN": ""}

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"odradek: --control: {expected.format(address)}\n"
