"""The console beside a host: its table, and the command that the host runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import odradek_console
from odradek.plugin import Companion, ConfigError, PluginConfig
from odradek.settings.options import option_name
from odradek.settings.setting import walk
from odradek_console.companion import ConsoleProcess
from odradek_console.console_settings import ConsoleSettings
from odradek_console.terminal.console import console
from support.reference_page import rows, sections

pytestmark = pytest.mark.ci

LISTENER = "127.0.0.1:9642"
PROVIDER: dict[str, object] = {"oidc.issuer": "https://login.example.org", "oidc.client.id": "console"}
TOKENS = '[[token]]\nname = "ann"\nrole = "viewer"\ntoken = "a-token-for-looking-1"\n'


def configured(values: dict[str, object]) -> Companion | None:
    config = PluginConfig("plugins.console", values)
    companion: Companion | None = odradek_console.odradek_companion(config)
    config.finish()
    return companion


def test_without_a_listener_there_is_no_companion() -> None:
    assert configured({}) is None
    assert configured({"max.clients": 5}) is None


def test_a_host_without_the_table_loads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "odradek_console.companion", None)

    assert configured({}) is None
    with pytest.raises(ImportError):
        configured({"listener": LISTENER})


def test_the_table_becomes_the_options_of_the_command(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(TOKENS)
    companion = configured(
        {
            "listener": "0.0.0.0:9642",
            "tokens": str(tokens),
            "history.ms": 60_000,
            "max.clients": 7,
            "trusted.proxies": ["10.0.0.0/8", "::1"],
        }
    )

    assert companion is not None
    command = companion.command("localhost:9092")
    assert command[:4] == [sys.executable, "-m", "odradek_console", "--until-stdin-ends"]
    given = console.make_context("console", list(command[4:])).params
    assert given["bootstrap_servers"] == "localhost:9092"
    assert given["history_ms"] == 60_000
    assert given["max_clients"] == 7
    assert [str(each) for each in given["trusted_proxies"]] == ["10.0.0.0/8", "::1/128"]
    assert given["tokens"] == tokens
    assert given["topic"] == "__client_telemetry"


def test_it_reads_another_cluster_if_the_table_names_one(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=SSL\n")

    own = configured({"listener": LISTENER})
    other = configured({"listener": LISTENER, "bootstrap.servers": "far:9092", "command.config": str(file)})

    assert isinstance(own, ConsoleProcess)
    assert isinstance(other, ConsoleProcess)
    assert "far:9092" in other.command("localhost:9092")
    assert "localhost:9092" not in other.command("localhost:9092")
    assert (own.security_protocol, other.security_protocol) == ("PLAINTEXT", "SSL")


@pytest.mark.parametrize(
    ("values", "key", "problem"),
    [
        ({"listener": "0.0.0.0:9642"}, "listener", "users must log in"),
        ({"listener": "127.0.0.1:0"}, "listener", "a port other than 0"),
        ({"listener": "here"}, "listener", "expected HOST:PORT"),
        ({"role": "king"}, "role", "viewer, operator"),
        ({"role": "operator", "trusted.proxies": "10.0.0.0/8"}, "role", "where users log in"),
        ({"oidc.client.id": "console"}, "oidc.issuer", "expected the issuer"),
        ({"oidc.issuer": "http://login.example.org"}, "oidc.issuer", "https://HOST"),
        ({"oidc.issuer": "https://login.example.org"}, "oidc.client.id", "at the provider"),
        (PROVIDER, "oidc.viewers", "nobody would have a role"),
        (PROVIDER | {"oidc.operators": ["*"]}, "oidc.operators", "expected a group"),
        (PROVIDER | {"oidc.viewers": ["*"], "oidc.ca": __file__}, "oidc.ca", "PEM|SSL|certificate"),
        ({"oidc.client.secret.file": "/none"}, "oidc.client.secret.file", "expected a file"),
        ({"trusted.proxies": "everywhere"}, "trusted.proxies", "a network"),
        ({"programs": "http://[::1"}, "programs", r"found 'http://\[::1'"),
        ({"programs": ["http://east:9464", ""]}, "programs", "found ''"),
        ({"programs": ["http://east:94640"]}, "programs", "expected http"),
        ({"grafana.url": "https://ann:s3cret@grafana"}, "grafana.url", "found a user$"),
        ({"program.ca": __file__}, "program.ca", "PEM|SSL|certificate"),
        ({"audit.log": "/none/audit.log"}, "audit.log", "expected a file in an existing folder"),
        ({"audit.log": "~no-such-user/audit.log"}, "audit.log", "expected a file in an existing folder"),
        ({"max.clients": 0}, "max.clients", "from 1"),
        ({"history.ms": "1h"}, "history.ms", "a whole number"),
        ({"tokens": "/none"}, "tokens", "expected a file"),
        ({"tokens": __file__}, "tokens", "expected TOML"),
        ({"owners": __file__}, "owners", "cannot be read"),
        ({"command.config": "/none"}, "command.config", "expected a file"),
        ({"tls.key": __file__}, "tls.certificate", "the certificate"),
        ({"tls.certificate": __file__}, "tls.certificate", "PEM|SSL"),
        ({"max.client": 3}, "max.client", "did you mean max.clients"),
    ],
)
def test_a_wrong_value_names_its_key(values: dict[str, object], key: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as raised:
        configured({"listener": LISTENER} | values)

    assert raised.value.path == f"plugins.console.{key}"


def test_a_wrong_value_is_told_with_its_bounds() -> None:
    with pytest.raises(ConfigError) as raised:
        configured({"listener": LISTENER, "retain.ms": 0})

    problem = "expected a whole number from 1 to 999999999999, found 0"
    assert str(raised.value) == f"plugins.console.retain.ms: {problem}"


def test_every_key_is_read_and_its_option_is_on_the_page() -> None:
    config = PluginConfig("plugins.console", {"topic": "other"})
    odradek_console.odradek_companion(config)
    section = sections("../../plugins/console/README.md")["Options"]
    named = {key for key in rows(section) if key != "key"}
    pairs = dict(re.findall(r"`([a-z.]+)` is\s`(--[a-z-]+)", section))
    plain = {key: f"--{key.removesuffix('.ms').replace('.', '-')}" for key in named}

    assert named == config.known
    assert {each.name: option_name(each) for _, each in walk(ConsoleSettings)} == plain | pairs


def test_the_times_of_the_page_are_those_of_the_options() -> None:
    table = rows(sections("../../plugins/console/README.md")["Options"])

    assert [table[key][:3] for key in ("history.ms", "session.idle.ms", "tables.timeout.ms")] == [
        ["`history.ms`", "integer, 1 to 999999999999 ms", "`43200000`"],
        ["`session.idle.ms`", "integer, 1 to 999999999999 ms", "`7200000`"],
        ["`tables.timeout.ms`", "integer, 1 to 999999999999 ms", "`10000`"],
    ]
