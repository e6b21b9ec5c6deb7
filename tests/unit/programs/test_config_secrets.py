"""Secrets of a configuration: by file, by environment variable, and shown nowhere."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from odradek.endpoints.log_lines import JsonFormatter, LineFormatter
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.process.log_format import HidingFormatter
from odradek.programs.config import load_config, parse

PASSWORD = 'pa"ss\\wörd'


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(f"{PASSWORD}\n")
    path.chmod(0o600)
    return path


@pytest.fixture
def properties_file(tmp_path: Path) -> Path:
    path = tmp_path / "secrets.properties"
    path.write_text(f"# a comment\nuser=alice\npassword={PASSWORD}\n")
    path.chmod(0o600)
    return path


def test_a_file_is_the_value(secret_file: Path) -> None:
    config = load_config(overrides=[f"plugins.kafka.sasl.password=${{file:{secret_file}}}"])

    assert config.plugins["kafka"]["sasl.password"] == PASSWORD


def test_a_key_of_a_properties_file_is_the_value(properties_file: Path) -> None:
    config = load_config(overrides=[f"plugins.kafka.sasl.password=${{file:{properties_file}:password}}"])

    assert config.plugins["kafka"]["sasl.password"] == PASSWORD


def test_an_environment_variable_is_the_value(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NODE", "7")
    monkeypatch.setenv("POD_IP", "10.0.0.5")
    path = tmp_path / "odradek.toml"
    path.write_text(
        """
        node.id = "${env:NODE}"
        advertised.listeners = ["PLAINTEXT://${env:POD_IP}:9092"]
        """
    )

    config = load_config(path)

    assert config.broker.node_id == 7
    assert config.advertised["PLAINTEXT"].host == "10.0.0.5"
    assert not config.start_values["advertised.listeners"].setting.sensitive


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("${env:NOT_SET_HERE}", "expected the environment variable NOT_SET_HERE, which is not set"),
        ("${file:DIR/none}", "the file DIR/none cannot be read: no such file or directory"),
        ("${file:DIR}", "the file DIR cannot be read: it is a folder, expected a file"),
        ("${file:DIR/secret:none}", "expected the key none in the file DIR/secret, which does not have it"),
    ],
)
def test_a_reference_without_a_text_stops_the_start(
    secret_file: Path, tmp_path: Path, reference: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config(overrides=[f"data.dir={reference.replace('DIR', str(tmp_path))}"])

    assert str(raised.value).replace(str(tmp_path), "DIR") == f"data.dir: {problem}"


def test_other_texts_with_a_dollar_stay() -> None:
    config = load_config(overrides=["plugins.x.template=${labels.team}-$1-${other:NAME}"])

    assert config.plugins["x"]["template"] == "${labels.team}-$1-${other:NAME}"


def test_an_error_does_not_show_a_secret(secret_file: Path) -> None:
    with pytest.raises(ConfigError, match=r"node.id: expected a whole number .*, found '\[hidden\]'$"):
        load_config(overrides=[f"node.id=${{file:{secret_file}}}"])


def test_an_error_does_not_show_a_part_of_a_list(secret_file: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        load_config(overrides=[f"listeners=PLAINTEXT://h:1,${{file:{secret_file}}}"])

    assert PASSWORD not in str(raised.value)
    assert "[hidden]" in str(raised.value)


def test_an_error_of_a_plugin_does_not_show_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", PASSWORD)
    config = load_config(overrides=["plugins.x.number=${env:TOKEN}"])
    table = PluginConfig("plugins.x", config.plugins["x"])

    with pytest.raises(ConfigError) as quoting, config.secrets.hidden_in_errors():
        table.integer("number", 0)
    with pytest.raises(ConfigError) as careless, config.secrets.hidden_in_errors():
        raise table.error("number", f"the server refused {table.text('number')}")

    assert str(quoting.value).endswith("found '[hidden]'")
    assert str(careless.value) == "plugins.x.number: the server refused [hidden]"


def test_a_value_from_a_file_is_not_described(secret_file: Path) -> None:
    config = load_config(overrides=[f"data.dir=/x/${{file:{secret_file}}}"])

    assert config.start_values["data.dir"].setting.sensitive
    assert not load_config().start_values["data.dir"].setting.sensitive


@pytest.mark.parametrize(
    "key",
    ["metrics.otlp.headers", "plugins.x.sasl.password", "plugins.x.apiKey", "plugins.x.auth-token"],
)
def test_a_key_that_holds_a_secret_is_known_by_its_name(key: str) -> None:
    value: object = ["authorization=s3cret"] if key == "metrics.otlp.headers" else "s3cret"

    config = parse({key: value}, frozenset())

    assert list(config.secrets.by_key) == [key]
    assert "s3cret" not in repr(config.secrets)
    assert config.secrets.hide("refused: s3cret") == "refused: [hidden]"


@pytest.mark.parametrize("key", ["plugins.x.token.file", "plugins.x.password_file", "plugins.x.tokens"])
def test_a_key_that_names_a_file_holds_no_secret(key: str) -> None:
    config = parse({key: "/run/secret"}, frozenset())

    assert not config.secrets.by_key


@pytest.mark.parametrize("formatter", [LineFormatter(), JsonFormatter()])
def test_a_line_of_the_log_does_not_show_a_secret(formatter: logging.Formatter) -> None:
    hiding = HidingFormatter(formatter)
    hiding.secrets = [parse({"plugins.x.password": f"{PASSWORD}\nsecond line"}, frozenset()).secrets]
    try:
        raise ValueError(f"bad password {PASSWORD}")
    except ValueError as raised:
        error = raised
    record = logging.makeLogRecord(
        {
            "msg": "login with %s failed",
            "args": (PASSWORD,),
            "password": f"{PASSWORD}\nsecond line",
            "exc_info": (type(error), error, None),
        }
    )

    line = hiding.format(record)

    assert "login with [hidden] failed" in line
    assert "bad password [hidden]" in line
    assert "second line" not in line
    assert PASSWORD not in line
    assert json.dumps(PASSWORD)[1:-1] not in line


def test_a_short_secret_does_not_hide_other_texts() -> None:
    config = parse({"plugins.x.password": "abc"}, frozenset())

    assert config.secrets.hide("abcdef") == "abcdef"


def test_a_file_that_others_can_read_is_a_warning(
    secret_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    override = f"plugins.x.password=${{file:{secret_file}}}"

    load_config(overrides=[override])
    before = caplog.messages
    secret_file.chmod(0o644)
    load_config(overrides=[override])

    assert before == []
    assert [vars(record)["mode"] for record in caplog.records] == ["0644"]


def test_a_configuration_with_a_password_that_others_can_read_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "odradek.toml"
    path.write_text("plugins.x.password = 'secret'\n")
    path.chmod(0o644)
    load_config(path)
    warned = [vars(record)["key"] for record in caplog.records]
    path.write_text("plugins.x.number = 1\n")
    load_config(path)

    assert warned == ["plugins.x.password"]
    assert len(caplog.records) == 1
