"""Certificates are replaced under open connections: by a changed file, SIGHUP and IncrementalAlterConfigs."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.errors import RequestFailed
from odradek.client.resources import ConfigChange, ConfigResource
from odradek.security.private_ca import LOOPBACK, Issued
from odradek.wire.config_resource import ConfigOperation, ResourceType
from support.certificates import Files, authority, server
from support.hosts import ServeProcess, ThreadedHost, running_host
from support.waiting import wait_until

LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SSL://localhost:0"
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""ApiVersions v0 without a client id."""
KEY = "listener.name.ssl.ssl.keystore.location"


def renewed() -> Issued:
    return authority().issue("localhost", LOOPBACK, kind="rsa")


class Client:
    """An open TLS connection."""

    def __init__(self, port: int) -> None:
        context = ssl.create_default_context(cadata=authority().issued.certificate)
        plain = socket.create_connection(("localhost", port), 5)
        self.socket = context.wrap_socket(plain, server_hostname="localhost")

    @property
    def certificate(self) -> str:
        found = self.socket.getpeercert(True)
        assert found is not None
        return ssl.DER_cert_to_PEM_cert(found)

    def is_answered(self) -> bool:
        """Whether the host answers a request."""
        self.socket.sendall(API_VERSIONS)
        return bool(self.socket.recv(100_000))


def certificate_at(port: int) -> str:
    client = Client(port)
    found = client.certificate
    client.socket.close()
    return found


def serves(port: int, issued: Issued) -> bool:
    return certificate_at(port).split() == issued.certificate.split()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture
def host(files: Files) -> Iterator[ThreadedHost]:
    settings = [LISTENERS, *files.settings, "ssl.reload.interval.ms=50", "node.id=1"]
    with running_host(files.folder / "data", *settings) as started:
        yield started


def port(host: ThreadedHost) -> int:
    return host.host.listeners[1].bound_port


def metric(host: ThreadedHost, name: str) -> float:
    rows = host.call(lambda: list(host.host.metric_rows()))
    return next(row.value for row in rows if row.name == name)


def test_a_changed_file_is_used_for_new_connections_and_closes_no_old_one(
    host: ThreadedHost, files: Files
) -> None:
    old = Client(port(host))
    new = renewed()

    files.write("server.pem", new.both)
    wait_until(lambda: serves(port(host), new), "the new certificate is not served")

    assert old.certificate.split() == server().certificate.split()
    assert old.is_answered()
    old.socket.close()
    assert metric(host, "odradek.certificate.reloads") == 1


def test_a_bad_file_changes_nothing_until_it_is_repaired(
    host: ThreadedHost, files: Files, caplog: pytest.LogCaptureFixture
) -> None:
    files.write("server.pem", "nothing")
    wait_until(lambda: metric(host, "odradek.certificate.reload.failures") == 1, "no failure is counted")

    assert certificate_at(port(host)).split() == server().certificate.split()
    assert metric(host, "odradek.certificate.stale") == 1
    assert [each.levelname for each in caplog.records if "not reloaded" in each.message] == ["ERROR"]
    files.write("server.pem", server().both)
    wait_until(lambda: metric(host, "odradek.certificate.stale") == 0, "the certificate is still stale")
    assert metric(host, "odradek.certificate.reload.failures") == 1


def alter(host: ThreadedHost, key: str, value: str | None, broker: str = "1") -> None:
    with AdminClient(host.bootstrap) as admin:
        operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
        change = ConfigChange(key, value, operation)
        admin.incremental_alter_configs({ConfigResource(ResourceType.BROKER, broker): [change]})


def test_incremental_alter_configs_replaces_and_restores_a_certificate(
    host: ThreadedHost, files: Files
) -> None:
    new = renewed()
    other = files.write("other.pem", new.both)
    found = []

    for value in (other, None):
        alter(host, KEY, value)
        found.append(certificate_at(port(host)).split())

    assert found == [new.certificate.split(), server().certificate.split()]


@pytest.mark.parametrize(
    ("key", "broker", "problem"),
    [
        ("ssl.keystore.location", "1", "These security configs can be dynamically updated only per-listener "
         "using the listener prefix: [ssl.keystore.location]"),
        (KEY, "", "Cannot update these configs at default cluster level, broker id must be specified: "
         f"[{KEY}]"),
        (KEY, "1", "cannot read nope.pem: no such file or directory"),
    ],
)  # fmt: skip
def test_incremental_alter_configs_refuses_what_cannot_be_loaded(
    host: ThreadedHost, key: str, broker: str, problem: str
) -> None:
    with pytest.raises(RequestFailed) as error:
        alter(host, key, "nope.pem", broker)

    assert problem in str(error.value)
    assert certificate_at(port(host)).split() == server().certificate.split()


def test_a_value_that_was_set_at_run_time_survives_a_restart(files: Files) -> None:
    new = renewed()
    other = files.write("other.pem", new.both)
    settings = (LISTENERS, *files.settings, "node.id=1")
    with running_host(files.folder / "data", *settings) as host:
        alter(host, KEY, other)

    with running_host(files.folder / "data", *settings) as host:
        assert certificate_at(port(host)).split() == new.certificate.split()


@pytest.mark.ci
def test_sighup_loads_the_files_again(files: Files) -> None:
    new, folder = renewed(), files.folder
    toml = folder / "odradek.toml"
    lines = [
        'listeners = "SSL://localhost:0"', f'data.dir = "{folder / "data"}"', "ssl.reload.interval.ms = 0"
    ]  # fmt: skip
    toml.write_text("\n".join([*lines, f'ssl.keystore.location = "{files.server}"']))
    serve = ServeProcess("--config", str(toml))
    try:
        number = int(serve.bootstrap.rpartition(":")[2])
        old = Client(number)
        other = files.write("other.pem", new.both)
        toml.write_text("\n".join([*lines, f'ssl.keystore.location = "{other}"']))
        os.kill(serve.process.pid, signal.SIGHUP)
        wait_until(lambda: serves(number, new), "the new certificate is not served")
        assert old.is_answered()
        old.socket.close()
        assert not any("need a restart" in line for line in serve.errors)
    finally:
        assert serve.terminate() == 0
