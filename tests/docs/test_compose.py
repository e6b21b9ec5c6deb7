"""``contrib/compose``, without starting it: files, ports, keys and versions agree with each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from odradek.server.config import load_config
from odradek.server.plugins.active_plugin import PluginState, activate
from odradek.server.plugins.plugin_manager import load_plugins
from odradek_kafka.kafka_settings import DEFAULT_TOPIC, KafkaSettings
from support.reference_page import ROOT

COMPOSE = ROOT / "contrib/compose"
OTELCOL = ROOT / "contrib/otelcol"
VARIABLE = re.compile(r"\$\{env:(\w+):-([^}]*)\}")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


SERVICES: dict[str, Any] = read(COMPOSE / "compose.yaml")["services"]
CONFIG = load_config(COMPOSE / "odradek.toml")


def mounts(service: str) -> dict[str, str]:
    """The host path of each path in the container."""
    found = {}
    for volume in SERVICES[service].get("volumes", []):
        source, target, *_ = volume.split(":")
        found[target] = source
    return found


def port(service: str) -> str:
    """The only published port; the same inside and outside, and for this machine only."""
    (published,) = SERVICES[service]["ports"]
    address, outside, inside = published.split(":")
    assert (address, outside) == ("127.0.0.1", inside)
    return str(inside)


def test_every_mounted_or_built_file_exists() -> None:
    files = [source for service in SERVICES for source in mounts(service).values() if source.startswith(".")]
    build = SERVICES["odradek"]["build"]

    assert [name for name in files if not (COMPOSE / name).is_file()] == []
    assert (COMPOSE / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()


def test_the_files_that_commands_name_are_mounted() -> None:
    for service, argument in {
        "odradek": "/etc/odradek/odradek.toml",
        "otelcol": "/etc/otelcol/otlp.yaml",
        "prometheus": "--config.file=/etc/prometheus/prometheus.yml",
    }.items():
        assert argument in SERVICES[service]["command"]
        assert argument.removeprefix("--config.file=") in mounts(service)


def test_the_hosts_configuration_is_valid_and_so_are_its_plugin_tables() -> None:
    plugins = activate(load_plugins(), CONFIG.plugins)

    active = {plugin.name for plugin in plugins if plugin.state is PluginState.ACTIVE}
    assert {"enrich", "kafka", "otlp"} <= active


def test_clients_get_the_published_port() -> None:
    text = (COMPOSE / "odradek.toml").read_text(encoding="utf-8")

    assert f"PLAINTEXT://0.0.0.0:{port('odradek')}" in text
    assert f"PLAINTEXT://localhost:{port('odradek')}" in text
    assert CONFIG.plugins["kafka"]["bootstrap.servers"] == f"localhost:{port('odradek')}"


def test_the_image_installs_the_extras_that_the_configuration_needs() -> None:
    (found,) = re.findall(
        r"/src\[([\w,]+)\]", (ROOT / SERVICES["odradek"]["build"]["dockerfile"]).read_text(encoding="utf-8")
    )

    assert {"enrich", *CONFIG.plugins} <= set(found.split(","))


def test_data_survive_the_container() -> None:
    assert str(CONFIG.data_dir) in mounts("odradek")


def test_the_host_sends_to_the_collectors_port() -> None:
    endpoint = urlsplit(str(CONFIG.plugins["otlp"]["endpoint"]))
    environment = SERVICES["otelcol"]["environment"]

    assert SERVICES[str(endpoint.hostname)] is SERVICES["otelcol"]
    assert environment["OTLP_HTTP"] == f"0.0.0.0:{endpoint.port}"


def test_the_collectors_configuration_uses_these_variables() -> None:
    text = (OTELCOL / "otlp.yaml").read_text(encoding="utf-8")

    assert set(SERVICES["otelcol"]["environment"]) == {name for name, _ in VARIABLE.findall(text)}


def test_the_collector_writes_to_a_prometheus_that_accepts_it() -> None:
    target = urlsplit(SERVICES["otelcol"]["environment"]["PROMETHEUS"])

    assert (target.hostname, target.port) == ("prometheus", int(port("prometheus")))
    assert "--web.enable-remote-write-receiver" in SERVICES["prometheus"]["command"]


def test_the_collector_image_has_the_tested_version() -> None:
    modules = (OTELCOL / "builder.yaml").read_text(encoding="utf-8")
    (version,) = set(re.findall(r"v(0\.\d+\.\d+)$", modules, re.MULTILINE))

    assert SERVICES["otelcol"]["image"] == f"otel/opentelemetry-collector-contrib:{version}"


def test_no_image_is_latest() -> None:
    images = [service["image"] for service in SERVICES.values() if "image" in service]

    assert [image for image in images if not re.search(r":v?\d+\.\d+\.\d+$", image)] == []


def test_prometheus_scrapes_the_hosts_address() -> None:
    (job,) = read(COMPOSE / "prometheus.yml")["scrape_configs"]
    (target,) = job["static_configs"][0]["targets"]
    listener = (COMPOSE / "odradek.toml").read_text(encoding="utf-8")

    service, _, number = target.partition(":")
    assert service in SERVICES
    assert f'metrics.listener = "http://0.0.0.0:{number}"' in listener


def test_the_collector_reads_the_plugins_default_topic_and_encoding() -> None:
    text = (OTELCOL / "kafka.yaml").read_text(encoding="utf-8")
    defaults = dict(VARIABLE.findall(text))

    assert defaults["TOPIC"] == DEFAULT_TOPIC
    assert defaults["ENCODING"] == KafkaSettings(options={}).encoding
