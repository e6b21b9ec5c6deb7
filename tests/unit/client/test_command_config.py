from __future__ import annotations

from pathlib import Path

import pytest

from odradek.client.command_config import CommandConfig, load_command_config
from odradek.client.errors import ConnectFailed
from odradek.client.sasl import SaslLogin
from odradek.plugin.config import ConfigError
from odradek.security.oauth.token_claims import ClaimRules
from odradek.security.oauth.unsecured_token import unsecured_token
from odradek.settings.properties import properties
from odradek.waiting.clock import SystemClock


def test_without_a_file_the_defaults_apply() -> None:
    config = load_command_config(None)

    assert config == CommandConfig(client_id="odradek", request_timeout_ms=30_000)


def test_known_keys_are_used_and_others_ignored(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=me\nrequest.timeout.ms: 500\nlinger.ms=5\nsecurity.protocol=PLAINTEXT\n")

    config = load_command_config(file)

    assert config == CommandConfig(client_id="me", request_timeout_ms=500)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("request.timeout.ms=soon", "request.timeout.ms"),
        ("request.timeout.ms=0", "request.timeout.ms"),
        ("security.protocol=TLS", "security.protocol"),
        ("security.protocol=SASL_SSL", "sasl.mechanism"),
        ("security.protocol=SSL\nssl.truststore.type=JKS", "ssl.truststore.type"),
        ("security.protocol=SSL\nssl.keystore.key=k", "ssl.keystore.key"),
        (
            "security.protocol=SSL\nssl.endpoint.identification.algorithm=x",
            "ssl.endpoint.identification.algorithm",
        ),
        ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI", "sasl.mechanism"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=x", "sasl.jaas.config"),
    ],
)
def test_an_unsupported_value_is_refused_with_file_and_key(tmp_path: Path, text: str, key: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(text)

    with pytest.raises(ConfigError) as refused:
        load_command_config(file)

    assert refused.value.path == f"{file}.{key}"


MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    "text",
    [
        "sasl.username=al\nsasl.password=a b=c",
        f'sasl.jaas.config={MODULE} required username="al" password="a b=c";',
        f'sasl.jaas.config={MODULE} required password = "a b=c" \\\n  username=al;',
    ],
)
def test_a_login_can_have_librdkafkas_or_kafkas_form(tmp_path: Path, text: str) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n{text}\n")

    config = load_command_config(file)

    assert config.login == SaslLogin("SCRAM-SHA-512", "al", "a b=c")


def test_escaped_characters_in_kafkas_form_are_unescaped(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        r'sasl.jaas.config=x required username="al" password="q\"b\\s";'
    )

    config = load_command_config(file)

    assert config.login == SaslLogin("PLAIN", "al", 'q"b\\s')


def oauthbearer(tmp_path: Path, text: str) -> SaslLogin:
    file = tmp_path / "client.properties"
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n{text}\n")
    login = load_command_config(file).login
    assert login is not None
    return login


def test_a_token_is_read_from_its_file_each_time(tmp_path: Path) -> None:
    file = tmp_path / "a token"
    login = oauthbearer(tmp_path, f"sasl.oauthbearer.token.endpoint.url={file.as_uri()}")
    assert login.token is not None

    file.write_text("first\n")
    first = login.token()
    file.write_text("second\n")
    second = login.token()

    assert (first, second) == ("first", "second")


def test_a_token_that_cannot_be_read_is_an_error_of_the_connection(tmp_path: Path) -> None:
    login = oauthbearer(tmp_path, f"sasl.oauthbearer.token.endpoint.url={(tmp_path / 'none').as_uri()}")
    assert login.token is not None

    with pytest.raises(ConnectFailed, match="none cannot be read"):
        login.token()


def test_a_token_without_a_signature_in_kafkas_form(tmp_path: Path) -> None:
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    login = oauthbearer(
        tmp_path, f'sasl.jaas.config={module} required unsecuredLoginStringClaim_sub="alice";'
    )
    assert login.token is not None
    rules = ClaimRules(clock=SystemClock())

    assert unsecured_token(rules, login.token()).principal_name == "alice"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sasl.oauthbearer.token.endpoint.url=https://idp/token",
        "sasl.oauthbearer.token.endpoint.url=file://host/token",
        "sasl.username=al\nsasl.password=x",
    ],
)
def test_a_token_needs_a_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl.oauthbearer.token.endpoint.url: expected the file"):
        oauthbearer(tmp_path, text)


def test_a_login_without_sasl_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("sasl.mechanism=PLAIN\nsasl.username=al\nsasl.password=x\n")

    config = load_command_config(file)

    assert config.login is None


def test_a_password_is_not_printed() -> None:
    assert "secret" not in repr(SaslLogin("PLAIN", "alice", "secret"))


def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_command_config(tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a : b", {"a": "b"}),
        ("a b c", {"a": "b c"}),
        ("a", {"a": ""}),
        ("# x\n! y\n\n  a = b = c  ", {"a": "b = c"}),
        ("a=one,\\\ntwo", {"a": "one,two"}),
        ("a=1\na=2", {"a": "2"}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    found = properties(text)

    assert found == expected
