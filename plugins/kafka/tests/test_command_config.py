"""The properties file of a gateway is also that of its exporter."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.client.command_config import load_command_config
from odradek.plugin import ConfigError, PluginConfig
from odradek_kafka.kafka_settings import read_settings
from odradek_kafka.source_settings import read_source_settings
from odradek_kafka.writer_settings import read_writer_settings
from support.certificates import Files

SCRAM = (
    "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nclient.id=gateway\n"
    "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
    'username="odradek" password="a \\"quoted\\" one";\n'
)
SERVERS = {
    "bootstrap.servers": "127.0.0.1:1",
    "source.bootstrap.servers": "127.0.0.1:1",
    "telemetry.bootstrap.servers": "127.0.0.1:1",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "upstream.properties"
    path.write_text(SCRAM)
    return path


def table(prefix: str, file: Path, **more: object) -> PluginConfig:
    server = f"{prefix}bootstrap.servers"
    values: dict[str, object] = {server: SERVERS[server], f"{prefix}command.config": str(file)}
    return PluginConfig("plugins.kafka", values | more)


@pytest.mark.parametrize(
    ("prefix", "read"),
    [("", read_settings), ("source.", read_source_settings), ("telemetry.", read_writer_settings)],
)
def test_each_client_logs_in_as_the_gateway_does(prefix: str, read: object, file: Path) -> None:
    config = table(prefix, file)

    options = read(config).options  # type: ignore[operator]
    config.finish()

    login = load_command_config(file).login
    assert login is not None
    assert (options["security.protocol"], options["sasl.mechanism"]) == ("SASL_PLAINTEXT", login.mechanism)
    assert (options["sasl.username"], options["sasl.password"]) == (login.user, login.password)
    assert options["sasl.password"] == 'a "quoted" one'
    assert options["client.id"] != "gateway"


def test_an_option_of_the_table_wins(file: Path) -> None:
    options = read_settings(table("", file, **{"client.sasl.username": "other"})).options

    assert options["sasl.username"] == "other"


def test_certificates_in_pem_are_those_of_librdkafka(tmp_path: Path) -> None:
    files, path = Files(tmp_path), tmp_path / "tls.properties"
    path.write_text(
        f"security.protocol=SSL\nssl.truststore.type=PEM\nssl.truststore.location={files.ca}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={files.client}\n"
        "ssl.endpoint.identification.algorithm=\n"
    )

    options = read_settings(table("", path)).options

    assert options["ssl.ca.location"] == files.ca
    assert options["ssl.certificate.location"] == options["ssl.key.location"] == files.client
    assert options["ssl.endpoint.identification.algorithm"] == "none"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ssl.truststore.location=/trust.jks\n", "librdkafka reads trusted certificates as PEM only"),
        ("ssl.keystore.location=/key.jks\n", "reads no key store of type JKS"),
        ("ssl.cipher.suites=TLS_AES_128_GCM_SHA256\n", "librdkafka has no option for ssl.cipher.suites"),
        ("security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n", "client"),
        ("security.protocol=NONE\n", "client"),
    ],
)
def test_what_librdkafka_cannot_do_stops_the_start(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.properties"
    path.write_text(text)

    with pytest.raises(ConfigError, match=problem):
        read_settings(table("", path))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"plugins.kafka.command.config: .*missing.properties cannot be read"
    ):
        read_settings(table("", tmp_path / "missing.properties"))
