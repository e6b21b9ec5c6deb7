"""``odradek forward`` as a user starts it."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.cli.main import FAILED, UNUSABLE, run
from odradek.client.admin import AdminClient
from odradek.client.users import new_credential
from odradek.security.scram import ScramMechanism
from support.accounts import assert_served_accounts_balance
from support.acls import acl
from support.forwarding import FLEET, ForwardProcess, create_topic, fill
from support.hosts import ThreadedHost, running_host
from support.waiting import wait_until

USER, PASSWORD, MECHANISM = "alice", "secret", ScramMechanism.SCRAM_SHA_256
LISTENERS = "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
SETTINGS = ("authorizer.class.name=StandardAuthorizer", "super.users=User:ANONYMOUS")
LISTENER = "plugins.prometheus.listener=http://127.0.0.1:0"
LETTERS = f"{FLEET}_dead_letter"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    """Super users connect without a password, alice with hers."""
    data = tmp_path_factory.mktemp("forward") / "data"
    with running_host(data, LISTENERS, *SETTINGS, "group.initial.rebalance.delay.ms=0") as host:
        credential = new_credential(USER, MECHANISM, PASSWORD, 4096, b"salt of alice")
        with AdminClient(host.bootstrap) as admin:
            assert admin.alter_user_scram_credentials(upsertions=[credential]) == {USER: None}
        create_topic(host.bootstrap)
        yield host


@pytest.fixture
def alice(cluster: ThreadedHost, tmp_path: Path) -> tuple[str, ...]:
    """The options of alice."""
    login = f'ScramLoginModule required username="{USER}" password="{PASSWORD}";'
    properties = tmp_path / "alice.properties"
    properties.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={MECHANISM.mechanism_name}\n"
        f"sasl.jaas.config=org.apache.kafka.common.security.scram.{login}\nheartbeat.interval.ms=100\n"
    )
    port = cluster.host.listeners[1].bound_port
    return "--bootstrap-server", f"127.0.0.1:{port}", "--command-config", str(properties), "--topic", FLEET


def allow(cluster: ThreadedHost, *texts: str) -> None:
    with AdminClient(cluster.bootstrap) as admin:
        assert set(admin.create_acls([acl(text) for text in texts]).values()) == {None}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--bootstrap-server", "127.0.0.1:1"), "127.0.0.1:1: connection refused"),
        (("--topic", "missing"), "missing: UNKNOWN_TOPIC_OR_PARTITION"),
    ],
    ids=["no broker", "no topic"],
)
def test_a_start_without_its_topic_fails(
    cluster: ThreadedHost, arguments: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--bootstrap-server", cluster.bootstrap, "--plugin", "stdout", *arguments)

    assert run(["forward", *options]) == FAILED
    assert f"odradek forward: {problem}\n" in capsys.readouterr().err


def test_a_start_without_plugins_is_refused(
    cluster: ThreadedHost, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["forward", "--bootstrap-server", cluster.bootstrap]) == UNUSABLE
    assert "plugins: no plugin has a forwarder, receiver or exporter" in capsys.readouterr().err


def test_a_check_tells_what_the_forwarders_would_do(
    cluster: ThreadedHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["forward", "--check", "--bootstrap-server", cluster.bootstrap, "--topic", FLEET]

    assert run([*arguments, "--set", LISTENER, "--group", "mine"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) < 80
    out = " ".join(out.split())
    assert f"reads topic {FLEET} of {cluster.bootstrap}, as ANONYMOUS over PLAINTEXT" in out
    assert "groups mine.prometheus.scrape" in out
    assert "totals in mine.prometheus.scrape.totals" in out
    assert f"ok topic {FLEET} can be read" in out
    assert "ok topic mine.prometheus.scrape.totals can be created" in out
    assert "whether the destinations of plugins answer" in out
    with AdminClient(cluster.bootstrap) as admin:
        assert "mine.prometheus.scrape.totals" not in {row.name for row in admin.metadata().topics}

    assert run([*arguments]) == UNUSABLE
    assert "no plugin has a forwarder" in capsys.readouterr().err
    assert run([*arguments, "--plugin", "stdout", "--topic", "missing"]) == FAILED
    assert "FAIL  topic missing: UNKNOWN_TOPIC_OR_PARTITION" in capsys.readouterr().out


@pytest.mark.ci
def test_a_start_without_rights_says_which_are_missing(
    cluster: ThreadedHost, alice: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    create_topic(cluster.bootstrap, 1, LETTERS)
    problems = []
    assert run(["forward", "--check", *alice, "--plugin", "stdout"]) == FAILED
    checked = " ".join(capsys.readouterr().out.split())
    for right in (f"READ TOPIC {FLEET}", f"WRITE TOPIC {LETTERS}"):
        assert run(["forward", *alice, "--plugin", "stdout"]) == FAILED
        problems.append(capsys.readouterr().err.splitlines()[-1])
        allow(cluster, f"ALLOW User:alice {right}")
    assert run(["forward", *alice, "--plugin", "stdout"]) == FAILED
    problems.append(capsys.readouterr().err.splitlines()[-1])

    assert [text.split(": ", 1)[1] for text in problems] == [
        f"{FLEET}: TOPIC_AUTHORIZATION_FAILED",
        f"{LETTERS}: TOPIC_AUTHORIZATION_FAILED",
        "odradek.forward.receivers: GROUP_AUTHORIZATION_FAILED",
    ]
    assert "as user alice (SCRAM-SHA-256) over SASL_PLAINTEXT" in checked
    for problem in (
        f"topic {FLEET}: TOPIC_AUTHORIZATION_FAILED",
        f"topic {LETTERS}: TOPIC_AUTHORIZATION_FAILED; needs the right WRITE on it",
        "needs the right READ on the group odradek.forward.receivers",
    ):
        assert f"FAIL {problem}" in checked

    allow(cluster, "ALLOW User:alice READ GROUP odradek.forward.receivers")
    assert run(["forward", "--check", *alice, "--plugin", "stdout"]) == 0
    fill(cluster.bootstrap, range(20))
    arguments = (*alice, "--plugin", "stdout", "--set", "metrics.listener=http://127.0.0.1:0")
    with ForwardProcess(*arguments) as process:
        pushes = [json.loads(process.lines.get(timeout=60)) for _ in range(20)]
        url = process.metrics_url
        wait_until(lambda: assert_served_accounts_balance(url)["forwarder_queued", "receivers"] == 0, "lag")
        delivered = assert_served_accounts_balance(url)["forwarder_delivered", "receivers"]
        with urllib.request.urlopen(url.replace("/metrics", "/readyz"), timeout=30) as page:
            assert page.status == 200

    assert process.ready == f"odradek ready group=odradek.forward.receivers topic={FLEET}"
    assert delivered == 20
    assert len({push["context"]["client_id"] for push in pushes}) == 20
    assert process.process.returncode == 0
