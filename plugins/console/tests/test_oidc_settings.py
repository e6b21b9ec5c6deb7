"""The console checks the settings of an OpenID provider when it starts."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from odradek.endpoints import Address
from odradek.plugin import ConfigError
from odradek_console.terminal.console import console
from odradek_console.web.access import Access
from odradek_console.web.access_settings import AccessSettings
from odradek_console.web.oidc_settings import OidcSettings
from odradek_console.web.users import Role
from support.console_site import ANYWHERE

GOOD: dict[str, Any] = {"issuer": "https://login.example.org/realms/x", "client_id": "c", "viewers": ("*",)}


def access(**settings: Any) -> Access:
    return Access(AccessSettings(oidc=OidcSettings(**{**GOOD, **settings})), ANYWHERE)


@pytest.mark.parametrize(
    "issuer",
    [
        "https://login.example.org",
        "https://login.example.org:8443/realms/x/",
        "http://127.0.0.1:1",
        "http://[::1]:1",
    ],
)
def test_a_console_with_a_provider_may_listen_anywhere(issuer: str) -> None:
    assert access(issuer=issuer).settings.has_login


@pytest.mark.parametrize(
    "issuer",
    [
        "login.example.org",
        "http://login.example.org",
        "http://127.0.0.1.example.org",
        "https://",
        "https://user:word@login.example.org",
        "https://login.example.org?x",
        "https://login.example.org#x",
        "https://login.example.org/a b",
        "https://[x",
        "file:///etc/passwd",
    ],
)
def test_an_issuer_that_is_not_safe_is_refused(issuer: str) -> None:
    with pytest.raises(ConfigError, match="--oidc-issuer: expected https://HOST, or http:// on this machine"):
        access(issuer=issuer)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"client_id": ""}, "--oidc-client-id: expected the id of this console at the provider"),
        ({"viewers": ()}, "--oidc-viewer: nobody would have a role"),
        ({"operators": ("*",)}, "--oidc-operator: expected a group"),
        ({"secret": Path("/none")}, "--oidc-client-secret-file: cannot be read: No such file"),
        ({"ca": Path(__file__)}, "--oidc-ca: .*test_oidc_settings"),
    ],
)
def test_a_setting_that_is_missing_or_wrong_is_named(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        access(**settings)


@pytest.mark.parametrize("content", [b"", b"\n", b"two\nlines of it", b"\xff\xfe-secret"])
def test_a_file_without_a_secret_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)

    with pytest.raises(ConfigError, match="expected a file with a line of printable") as raised:
        access(secret=file)

    assert "lines of it" not in str(raised.value)


@pytest.mark.parametrize(("mode", "warnings"), [(0o600, 0), (0o640, 1), (0o604, 1)])
def test_a_secret_that_others_can_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warnings: int
) -> None:
    file = tmp_path / "secret"
    file.write_text("a-secret")
    file.chmod(mode)

    access(secret=file)

    assert len(caplog.records) == warnings
    assert "a-secret" not in caplog.text


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"Authlib: pip install 'odradek-console\[oidc\]'"):
        access()


def test_everybody_on_this_machine_is_no_operator_beside_a_provider() -> None:
    with pytest.raises(ConfigError, match="--role"):
        Access(
            AccessSettings(oidc=OidcSettings(**GOOD), local_role=Role.OPERATOR), Address("127.0.0.1", 9642)
        )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--oidc-client-id", "c"], "--oidc-issuer"),
        (["--oidc-viewer", "*"], "--oidc-issuer"),
        (["--oidc-issuer", "https://login.example.org"], "--oidc-client-id"),
        (["--oidc-issuer", "http://login.example.org"], "https://HOST"),
        (["--oidc-issuer", "https://login.example.org", "--oidc-client-id", "c"], "nobody would have a role"),
        (["--oidc-client-secret-file", "/none"], "expected a file, found '/none'"),
    ],
)
def test_the_command_says_what_is_missing(options: list[str], problem: str) -> None:
    done = CliRunner().invoke(console, ["--bootstrap-server", "127.0.0.1:9", *options])

    assert done.exit_code != 0
    assert problem in done.output + str(done.exception)


@pytest.mark.parametrize(
    ("groups", "role"),
    [(["a"], Role.OPERATOR), (["b", "a"], Role.OPERATOR), (["b"], Role.VIEWER), (["c"], None), ([], None)],
)
def test_the_greatest_role_of_the_groups_counts(groups: list[str], role: Role | None) -> None:
    assert OidcSettings(issuer="", client_id="", operators=("a",), viewers=("b",)).role(groups) is role


def test_a_star_is_a_viewer_of_any_group() -> None:
    settings = OidcSettings(issuer="", client_id="", operators=("a",), viewers=("*",))

    assert [settings.role(each) for each in ([], ["*"], ["a"])] == [Role.VIEWER, Role.VIEWER, Role.OPERATOR]
