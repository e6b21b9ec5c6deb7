"""``odradek gateway --check`` says what a start would find, and changes nothing."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.cli.main import FAILED, UNUSABLE, run
from odradek.client.admin import AdminClient
from odradek.client.users import new_credential
from odradek.security.scram import ScramMechanism
from support.acls import acl
from support.certificates import Files, authority
from support.hosts import ThreadedHost, running_host

USER, PASSWORD = "alice", "secret"
LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
AUTHORIZER = ("authorizer.class.name=StandardAuthorizer", "super.users=User:ANONYMOUS")
FREE = "listeners=PLAINTEXT://127.0.0.1:0"
Checked = tuple[int, str]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    """Super users connect without a password, alice with hers."""
    with running_host(
        tmp_path_factory.mktemp("cluster") / "data", LISTENERS, *AUTHORIZER, "node.id=1"
    ) as host:
        credential = new_credential(USER, ScramMechanism.SCRAM_SHA_256, PASSWORD, 4096, b"salt of alice")
        with AdminClient(host.bootstrap) as admin:
            assert admin.alter_user_scram_credentials(upsertions=[credential]) == {USER: None}
        yield host


@pytest.fixture
def check(
    cluster: ThreadedHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Checked]:
    """Run the check; return its status and what it printed, each finding in one line."""

    def checked(*settings: str, upstream: str = cluster.bootstrap) -> Checked:
        values = (FREE, f"data.dir={tmp_path / 'data'}", *settings)
        options = [part for each in values for part in ("--set", each)]
        status = run(["gateway", "--check", "--upstream", upstream, *options])
        out = capsys.readouterr().out
        assert all(len(line) < 80 or str(tmp_path) in line for line in out.splitlines())
        return status, " ".join(out.split())

    return checked


@pytest.fixture
def as_alice(cluster: ThreadedHost, tmp_path: Path) -> tuple[str, str]:
    """The upstream and the setting of a gateway that logs in."""
    properties = tmp_path / "alice.properties"
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    properties.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        f'sasl.jaas.config={login} username="{USER}" password="{PASSWORD}";\n'
    )
    upstream = f"127.0.0.1:{cluster.host.listeners[1].bound_port}"
    return upstream, f"gateway.upstream.command.config={properties}"


def test_a_check_tells_what_a_gateway_would_be(
    check: Callable[..., Checked], cluster: ThreadedHost, tmp_path: Path
) -> None:
    status, out = check("subscriptions.all.metrics=*", "gateway.nodes=0-2")

    assert status == 0
    assert f"brokers {cluster.bootstrap}; own requests as ANONYMOUS over PLAINTEXT" in out
    assert "clients dial 127.0.0.1 with a free port (PLAINTEXT), and nodes 0-2 at free ports" in out
    assert "by the subscriptions of the cluster and of this file (all in the file)" in out
    assert f"pushes in {tmp_path / 'data'}" in out
    assert f"ok reached: broker 1 {cluster.bootstrap}" in out
    assert "ok listener PLAINTEXT has an address for each broker: 1" in out
    assert "ok all ports of the listeners are free" in out
    assert "Not checked: the rights and logins of clients" in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        (("gateway.nodes=7-8",), "FAIL listener PLAINTEXT: clients cannot reach the brokers 1; add them"),
        (
            ("data.dir=/dev/null/data",),
            "FAIL data.dir: /dev/null is not a directory that this user can write",
        ),
        (
            ("gateway.nodes=7", "gateway.bypass.unmapped=true"),
            "warn listener PLAINTEXT: clients dial 1 directly",
        ),
        ((), "warn subscriptions: there is none yet, so clients push nothing"),
        (("advertised.listeners=PLAINTEXT://gw.invalid:9092",), "this machine does not resolve gw.invalid"),
        (("gateway.lag=groups",), "ok lag of groups: the group odradek.lag."),
    ],
)
def test_a_check_finds_what_clients_would(
    check: Callable[..., Checked], settings: tuple[str, ...], found: str
) -> None:
    status, out = check(*settings)

    assert status == (FAILED if found.startswith("FAIL") else 0)
    assert found in out


def test_a_certificate_needs_every_advertised_name(check: Callable[..., Checked], tmp_path: Path) -> None:
    names = ["kafka.example.com", "b0.kafka.example.com"]
    files = Files(tmp_path)
    store = files.write("gateway.pem", authority().issue("gateway", names).both)
    settings = [
        "listeners=SSL://127.0.0.1:0",
        "advertised.listeners=SSL://kafka.example.com:9094",
        "gateway.node.names=b$(nodeId).kafka.example.com",
        f"ssl.keystore.location={store}",
    ]

    covered = check(*settings, "gateway.nodes=0")
    missing = check(*settings, "gateway.nodes=0-1")

    assert "and node N at bN.kafka.example.com:9094" in covered[1]
    assert "for all advertised names" in covered[1]
    assert missing[0] == FAILED
    assert "but clients are told to dial 'b1.kafka.example.com'" in missing[1]


def test_rights_that_the_gateway_lacks_are_named(
    check: Callable[..., Checked], as_alice: tuple[str, str], cluster: ThreadedHost
) -> None:
    upstream, setting = as_alice

    status, out = check(setting, "gateway.lag=groups", upstream=upstream)

    assert status == FAILED
    assert "own requests as user alice (SCRAM-SHA-256) over SASL_PLAINTEXT" in out
    assert "FAIL subscriptions: listing them needs the right DESCRIBE_CONFIGS on the cluster" in out
    assert "FAIL lag of groups: needs the right READ on the group odradek.lag." in out

    rights = ("DESCRIBE_CONFIGS CLUSTER kafka-cluster", "READ GROUP odradek.lag.*")
    with AdminClient(cluster.bootstrap) as admin:
        made = admin.create_acls([acl(f"ALLOW User:{USER} {each}") for each in rights])
        assert set(made.values()) == {None}
    assert check(setting, "gateway.lag=groups", upstream=upstream)[0] == 0


@pytest.mark.parametrize(
    ("upstream", "found"),
    [
        ("127.0.0.1:1", "the cluster does not answer: 127.0.0.1:1: connection refused"),
        ("nobody.invalid:9092", "nobody.invalid:9092"),
    ],
)
def test_a_cluster_that_does_not_answer_leaves_the_rest_unchecked(
    check: Callable[..., Checked], upstream: str, found: str
) -> None:
    status, out = check(upstream=upstream)

    assert status == FAILED
    assert found in out
    assert "Not checked: nodes, subscriptions and rights: no broker has answered" in out


def test_a_wrong_password_is_told_as_the_broker_says_it(
    check: Callable[..., Checked], as_alice: tuple[str, str], tmp_path: Path
) -> None:
    properties = tmp_path / "alice.properties"
    properties.write_text(properties.read_text().replace(PASSWORD, "wrong"))

    status, out = check(as_alice[1], upstream=as_alice[0])

    assert status == FAILED
    assert "SASL_AUTHENTICATION_FAILED" in out


def test_ports_in_use_fail_unless_the_gateway_itself_runs(
    check: Callable[..., Checked], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listener = f"listeners=PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
        free = check(listener)
        with running_host(tmp_path / "data"):
            running = check(listener)

    assert free[0] == FAILED
    assert "cannot listen on" in free[1]
    assert running[0] == 0
    assert "the ports: a gateway with this data.dir runs and has them" in running[1]


@pytest.mark.parametrize(
    "setting",
    [
        "no.such.key=1",
        "gateway.nodes=2-1",
        "listeners=SASL_SSL://127.0.0.1:0",
        "plugins.nowhere.a=1",
        "subscriptions.s.match=client_id=[unclosed",
        "gateway.upstream.command.config=/missing.properties",
    ],
)
def test_what_a_start_refuses_is_one_line(
    cluster: ThreadedHost, setting: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["gateway", "--check", "--upstream", cluster.bootstrap, "--set", setting]

    status = run(arguments)

    printed = capsys.readouterr()
    assert (status, printed.out, len(printed.err.splitlines())) == (UNUSABLE, "", 1)
