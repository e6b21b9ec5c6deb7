#!/usr/bin/env python3
"""Record the telemetry requests of real clients, for ``odradek.testing.pushes`` and the conformance page.

    python -m contrib.capture.pushes                     # from the repository's root; about two minutes
    python -m contrib.capture.pushes java-producer       # some clients only

Each client runs twice. In the first run it pushes a few times, its pushes are refused with each recoverable
error, and it is closed. In the second run a push is refused with INVALID_RECORD. This needs confluent-kafka,
Java with Maven (``contrib/java``) and Go (``contrib/go``). The recording of a client that cannot be run is
not changed.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from odradek import testing
from odradek.testing import NothingCame, Push, RunningHost
from odradek.testing.conformance import Handshake
from odradek.testing.pushes.recording import written
from odradek.waiting.clock import SystemClock

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "host" / "src" / "odradek" / "testing" / "pushes" / "data"
TOPIC, STREAMED = "recorded", "streamed"
CONSUMER = "-StreamThread-1-consumer"
"""The end of the client id of a consumer of Kafka Streams, which is no part of the recording's name."""
INTERVAL_MS = 2_000
PATIENCE_S = 30
AT_ONCE = 4
"""Clients: the machine must keep the time of all of them."""
ORDERLY = 3
"""Pushes before the first is refused."""
OVERCOME = (
    "UNKNOWN_SUBSCRIPTION_ID",
    "UNSUPPORTED_COMPRESSION_TYPE",
    "THROTTLING_QUOTA_EXCEEDED",
    "TELEMETRY_TOO_LARGE",
)
FATAL = "INVALID_RECORD"
SILENCE_S = 2.5 * INTERVAL_MS / 1000


def clients(folder: Path) -> dict[str, list[str]]:
    """The command lines by client; the first ``{}`` is the bootstrap servers, the second the client id."""
    librdkafka = [sys.executable, str(Path(__file__).with_name("librdkafka_client.py"))]
    found = {
        f"librdkafka-{kind}": [*librdkafka, "{}", TOPIC, "{}", kind] for kind in ("producer", "consumer")
    }
    java = subprocess.run(
        [sys.executable, str(ROOT / "contrib" / "java" / "classpath.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    if java.returncode == 0:
        command = ["java", "-Xmx256m", "-cp", java.stdout.strip(), "odradek.TelemetryClient"]
        for kind in ("producer", "consumer", "share", "admin", "application"):
            found[f"java-{kind}"] = [*command, "{}", TOPIC, "{}", kind]
        found[f"java-streams{CONSUMER}"] = [*command[:-1], "odradek.TelemetryStream", "{}", STREAMED, "{}"]
    program = str(folder / "telemetry")
    go = ["go", "build", "-C", str(ROOT / "contrib" / "go"), "-o", program, "./telemetry"]
    if subprocess.run(go, check=False).returncode == 0:
        found["franz-go"] = [program, "{}", TOPIC, "{}"]
    return found


@contextmanager
def living(command: Sequence[str], host: RunningHost, name: str) -> Iterator[None]:
    """Run a client, and close it in an orderly way at the end."""
    words = iter((host.bootstrap, name))
    arguments = [next(words) if word == "{}" else word for word in command]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, text=True) as process:
        try:
            yield
            process.communicate("\n", timeout=PATIENCE_S)
        finally:
            process.kill()


def accepted(host: RunningHost, name: str, after: Push | None = None, count: int = 1) -> Push:
    """Wait for a number of accepted pushes and return the last."""
    for _ in range(count):
        after = host.telemetry.wait_for_push(client_id=name, after=after, timeout_s=PATIENCE_S)
    assert after is not None
    return after


def first_life(command: Sequence[str], host: RunningHost, name: str) -> Push:
    """Refuse pushes with recoverable errors, and return the last push of the run."""
    with living(command, host, name):
        last = accepted(host, name, count=ORDERLY)
        for error in OVERCOME:
            host.fault("PushTelemetry", client_id=name, error=error).wait(PATIENCE_S)
            refused = host.telemetry.wait_for_push(
                client_id=name, error=error, after=last, timeout_s=PATIENCE_S
            )
            last = accepted(host, name, refused)
    return host.telemetry.pushes[-1]


def second_life(command: Sequence[str], host: RunningHost, name: str, last: Push) -> None:
    """Refuse a push with a fatal error."""
    with living(command, host, name):
        accepted(host, name, last)
        host.fault("PushTelemetry", client_id=name, error=FATAL).wait(PATIENCE_S)
        time.sleep(SILENCE_S)


def record(name: str, command: Sequence[str], host: RunningHost) -> None:
    """Record one client, from its first handshake to the end of its second run."""
    try:
        second_life(command, host, name, first_life(command, host, name))
    except NothingCame as reason:
        print(f"{name}: not recorded, the old recording stays: {reason}".splitlines()[0])
        return
    rows = [
        (each, b"") if isinstance(each, Handshake) else (each.exchange(), each.request.metrics or b"")
        for each in list(host.telemetry.exchanges)
        if each.context.client_id == name
    ]
    text = written(rows, SystemClock().now_ms())
    (DATA / f"{name.removesuffix(CONSUMER)}.jsonl").write_text(text, encoding="utf-8")
    print(f"{name}: {len(rows)} exchanges, {len(text)} bytes")


def main(wanted: Sequence[str]) -> None:
    build = Path.home() / ".cache" / "odradek" / "clients" / "franz-go"
    build.mkdir(parents=True, exist_ok=True)
    found = {
        name: command
        for name, command in clients(build).items()
        if not wanted or name.removesuffix(CONSUMER) in wanted
    }
    with testing.host() as host, ThreadPoolExecutor(AT_ONCE) as pool:
        host.subscribe("org.apache.kafka.", INTERVAL_MS)
        for topic in (TOPIC, STREAMED):
            host.topics.create(topic)
        for running in [pool.submit(record, name, command, host) for name, command in found.items()]:
            running.result()


if __name__ == "__main__":
    main(sys.argv[1:])
