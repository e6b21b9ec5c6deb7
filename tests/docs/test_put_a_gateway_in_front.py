"""``howto/put-a-gateway-in-front.md`` and ``howto/gateway-for-your-cluster.md`` do what they say."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from contrib.capture.ports import free_ports

from odradek.cli.gateway_run import GatewayRun
from odradek.client.command_config import load_command_config
from odradek.net.listener_tls import ListenerTls
from odradek.programs.config import load_config
from support.gateways import GatewayProcess
from support.hosts import ServeProcess
from support.reference_page import blocks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

PAGE, CLUSTERS = "howto/put-a-gateway-in-front.md", "howto/gateway-for-your-cluster.md"
PORTS = ("9092", "9192", "9193")
PATIENCE_S = 40.0


def texts(language: str, ports: dict[str, str], name: str = PAGE) -> list[str]:
    """The blocks of a page in a language, in order, with the ports of this test."""
    found = [text for each, text in blocks(name) if each == language]
    return [re.sub("|".join(PORTS), lambda port: ports[port[0]], text) for text in found]


def arguments(command: str) -> list[str]:
    """The arguments of a command of the page."""
    program, *found = shlex.split(command)
    assert program == "odradek"
    return found


@contextmanager
def stopped(process: ServeProcess) -> Iterator[ServeProcess]:
    try:
        yield process
    finally:
        process.terminate()


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_step_works_as_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("confluent_kafka")
    monkeypatch.chdir(tmp_path)
    ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
    serve, check, gateway, subscribe, consume = texts("sh", ports)[:5]
    (produce,) = texts("python", ports)
    (tmp_path / "gateway.toml").write_text(texts("toml", ports)[0], encoding="utf-8")
    listener = f"listeners=PLAINTEXT://127.0.0.1:{ports['9092']}"
    with ExitStack() as running:
        running.enter_context(stopped(ServeProcess(*arguments(serve)[1:], "--set", listener)))
        assert "FAIL" not in run(["-m", "odradek", *arguments(check)], tmp_path)
        running.enter_context(stopped(GatewayProcess(*arguments(gateway)[1:])))
        run(["-m", "odradek", *arguments(subscribe)], tmp_path)
        end_s, printed = time.monotonic() + PATIENCE_S, ""
        while not printed:
            assert time.monotonic() < end_s
            run(["-c", produce], tmp_path)
            listing = f"topics --bootstrap-server 127.0.0.1:{ports['9092']} --list"
            topics = run(["-m", "odradek", *listing.split()], tmp_path)
            if "client_telemetry" in topics.split():
                printed = run(["-m", "odradek", *arguments(consume)], tmp_path)

    assert "edge-1" in printed
    assert "orders" in printed
    assert "org.apache.kafka.producer." in printed


def test_the_other_files_of_the_page_are_valid(tmp_path: Path) -> None:
    _, credentials, subscriptions, *_ = texts("toml", {port: port for port in PORTS})
    properties = texts("properties", {})[0]
    file, own = tmp_path / "gateway.toml", tmp_path / "upstream.properties"
    file.write_text(credentials + subscriptions, encoding="utf-8")
    own.write_text(properties, encoding="utf-8")

    config = load_config(file)

    assert config.gateway.upstream_config == Path(own.name)
    assert list(config.subscriptions) == ["all"]
    login = load_command_config(own).login
    assert login is not None
    assert login.mechanism == "SCRAM-SHA-512"


@pytest.mark.parametrize(
    ("place", "login", "nodes"),
    [
        (0, None, "b$(nodeId).kafka.example.com"),
        (1, 0, "b$(nodeId).kafka.example.com"),
        (2, 1, "1-3"),
        (3, 2, "b$(nodeId).kafka.example.com"),
    ],
    ids=["names", "strimzi", "msk", "confluent"],
)
def test_the_gateway_of_each_cluster_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, login: int | None, nodes: str
) -> None:
    monkeypatch.chdir(tmp_path)
    same = {port: port for port in PORTS}
    run(["-m", "odradek", *arguments(texts("sh", same, CLUSTERS)[0])], tmp_path)
    file = tmp_path / "gateway.toml"
    file.write_text(texts("toml", same, CLUSTERS)[place], encoding="utf-8")
    if login is not None:
        logins = texts("properties", same) + texts("properties", same, CLUSTERS)
        properties = logins[login].replace("/etc/odradek/ca.pem", "certs/ca.pem")
        (tmp_path / "upstream.properties").write_text(properties, encoding="utf-8")

    made = GatewayRun(load_config(file))

    (routing,) = made.routings.values()
    assert str(routing.settings) == nodes
    tls = ListenerTls("SSL", made.config.of_listener(made.config.tls, "SSL"))
    routing.secure(tls)  # raises if the certificate of the page lacks a name
    assert (made.connection.login is None) == (login is None)
