"""``odradek serve --ephemeral``: the fixture for tests in other languages, through its control port."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from odradek.cli.ephemeral import tell_inactive
from odradek.cli.main import cli
from support.control import Control
from support.hosts import ServeProcess

pytestmark = pytest.mark.ci

HOUR_MS = 3_600_000
confluent_kafka = pytest.importorskip("confluent_kafka")


@pytest.fixture(scope="module")
def serve() -> Iterator[ServeProcess]:
    process = ServeProcess("--ephemeral", "--virtual-clock", "--set", "data.dir=/nowhere")
    yield process
    assert process.terminate() == 0
    assert not [line for line in process.errors if "ERROR" in line], process.errors


@pytest.fixture
def control(serve: ServeProcess) -> Control:
    control = Control(serve)
    control.call("forget")
    return control


def produce(serve: ServeProcess, topic: str) -> Any:
    """Produce a record, and return the producer, which pushes its metrics while it lives."""
    producer = confluent_kafka.Producer({"bootstrap.servers": serve.bootstrap, "client.id": "app"})
    producer.produce(topic, b"\xff", headers={"a": "b"})
    assert producer.flush(20) == 0
    return producer


def test_it_says_which_plugins_stay_inactive(serve: ServeProcess, control: Control) -> None:
    assert any("the others stay inactive: " in line and "enrich" in line for line in serve.errors)


def test_it_says_that_a_file_stands_for_an_installed_plugin(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")

    tell_inactive({"enrich"}, {"enrich": Path("enrich.py")})

    told = "plugin enrich is that of the file enrich.py; the installed one of this name stays inactive"
    assert caplog.messages[0] == told


def test_faults_requests_and_records(serve: ServeProcess, control: Control) -> None:
    control.call("topics/create", name="orders", partitions=1, retention_ms=HOUR_MS)
    fault = control.call("fault", api="Produce", topic="orders", error="NOT_ENOUGH_REPLICAS")

    produce(serve, "orders")

    assert control.call("fault/wait", id=fault["id"])["used"] == 1
    assert [each["id"] for each in control.call("faults")] == [fault["id"]]
    hit = [request["fault"] is not None for request in control.call("requests/of", api="Produce")]
    assert hit == [True, False]
    (record,) = control.call("topics/records", name="orders")
    assert (record["value"], record["headers"]) == ({"base64": "/w=="}, [["a", "b"]])
    assert control.call("check") is None
    assert control.call("faults") == []


def test_a_fault_without_a_hit_fails_the_check_once(control: Control) -> None:
    control.call("fault", api="Heartbeat", error="UNKNOWN_MEMBER_ID")

    status, answer = control.send("check")

    assert status == 409
    assert "Heartbeat error=UNKNOWN_MEMBER_ID (0 of 1)" in answer["error"]
    assert control.send("check")[0] == 200


def test_pushes(serve: ServeProcess, control: Control) -> None:
    control.call("subscribe", prefixes="org.apache.kafka.producer.", match={"client_id": "app"})
    producer = produce(serve, "pushed")

    points = control.call("telemetry/wait_for", client_id="app", timeout_s=20)
    del producer

    assert all(point["metric"].startswith("org.apache.kafka.producer.") for point in points)
    first = control.call("telemetry/pushes")[0]
    assert (first["error"], first["client_id"], first["points"]) == ("NONE", "app", points)
    status, answer = control.send("telemetry/wait_for", '{"client_id": "other", "timeout_s": 0.05}')
    assert status == 408
    assert "no data point of metric (any) of client other within 0.05 s\nsubscriptions:" in answer["error"]
    assert control.send("telemetry/pushes", '{"after": 99}')[1] == {"error": "no push has the number 99"}
    control.call("unsubscribe")


def test_records_and_offsets_without_a_client(serve: ServeProcess, control: Control) -> None:
    control.call(
        "topics/produce", name="read", values=["one", {"base64": "/w=="}], key="k", headers={"a": "b"}
    )
    control.call("groups/commit", group_id="g", topic="read", offsets={"0": 1})
    consumer = confluent_kafka.Consumer({"bootstrap.servers": serve.bootstrap, "group.id": "g"})
    consumer.subscribe(["read"])

    message = consumer.poll(20)
    assert (message.value(), message.key(), message.headers()) == (b"\xff", b"k", [("a", b"b")])
    consumer.commit(message)
    consumer.close()

    assert control.call("groups/wait_for_commit", group_id="g", topic="read", offsets={"0": 2}) == {"0": 2}
    assert control.call("groups/names") == ["g"]


def test_the_clock_begins_now_and_is_advanced(control: Control) -> None:
    before_ms = control.call("clock/now")

    assert control.call("clock/advance", elapsed_ms=HOUR_MS) == before_ms + HOUR_MS


def test_a_restart_keeps_the_port_and_the_data(serve: ServeProcess, control: Control) -> None:
    control.call("topics/create", name="kept")
    control.call("kill")
    assert control.send("topics/names") == (409, {"error": "the host has stopped"})

    control.call("restart")

    assert "kept" in control.call("topics/names")
    assert control.send("", method="GET")[1]["bootstrap"] == serve.bootstrap


@pytest.mark.parametrize(
    ("path", "body", "status", "expected"),
    [
        ("topic/names", "{}", 404, "no operation /topic/names: did you mean topics/names?; GET / lists them"),
        ("topics/create", "{", 400, "the body is not JSON"),
        ("topics/create", "[" * 100_000, 400, "the body is nested too deeply"),
        ("topics/create", "[]", 400, "the body must be a JSON object of the arguments"),
        ("topics/create", "{}", 400, "argument 'name' is missing: name, partitions=1, ..."),
        ("topics/create", '{"name": "a/b"}', 400, "a/b"),
        ("topics/records", '{"name": "none"}', 400, "no topic none"),
        ("fault", '{"api": "Produse", "error": 1}', 400, "did you mean Produce?"),
        ("telemetry/wait_for", '{"timeout_s": 1e300}', 400, "timestamp"),
        ("fault/wait", '{"id": 99}', 400, "no fault has the id 99"),
    ],
)
def test_a_mistake_is_one_clear_answer(
    control: Control, path: str, body: str, status: int, expected: str
) -> None:
    found, answer = control.send(path, body)

    assert found == status
    assert expected in answer["error"]


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"Origin": "http://example.org"}, 403),
        ("POST", {"Host": "example.org:80"}, 403),
        ("POST", {"Content-Length": "99999999999"}, 413),
        ("POST", {"Content-Length": "-1"}, 411),
        ("POST", {"Transfer-Encoding": "chunked"}, 411),
        ("GET", {}, 405),
        ("PUT", {}, 501),
    ],
)
def test_what_is_not_for_an_operation_is_refused(
    control: Control, method: str, headers: dict[str, str], status: int
) -> None:
    assert control.send("kill", method=method, **headers)[0] == status
    assert isinstance(control.call("topics/names"), list)


def test_the_index_has_every_operation_with_a_sentence(control: Control) -> None:
    operations = control.send("", method="GET")[1]["operations"]

    assert operations["POST /topics/create"] == {
        "arguments": "name, partitions=1, ...",
        "description": "Create a topic.",
    }
    assert all(each["description"].endswith(".") for each in operations.values())


def test_it_stops_with_the_process_that_started_it() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "odradek", "serve", "--ephemeral", "--control", "127.0.0.1:0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    data = Path(process.stdout.readline().split(" data=")[1].split(" ")[0])
    assert data.is_dir()

    process.communicate(timeout=60)

    assert process.returncode == 0
    assert not data.exists()


def test_a_control_port_in_use_is_one_line(control: Control) -> None:
    command = [sys.executable, "-m", "odradek", "serve", "--ephemeral", "--control", control.address]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"--control: cannot listen on {control.address}: address already in use\n")


def test_a_plugin_is_active() -> None:
    serve = ServeProcess("--ephemeral", "--plugin", "stdout")
    control = Control(serve)
    control.call("subscribe")
    producer = produce(serve, "orders")

    assert serve.next_push(lambda row: True)
    assert control.call("telemetry/wait_for", client_id="app")
    del producer
    assert serve.terminate() == 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--virtual-clock"], "--control, --virtual-clock and --brokers need --ephemeral"),
        (["--control", "127.0.0.1:0"], "--control, --virtual-clock and --brokers need --ephemeral"),
        (["--ephemeral", "--recover-metadata"], "nothing to recover"),
    ],
)
def test_options_that_contradict_are_refused(options: list[str], expected: str) -> None:
    result = CliRunner().invoke(cli, ["serve", *options])

    assert result.exit_code == 2
    assert expected in result.output
