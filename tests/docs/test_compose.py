"""``contrib/compose``, without starting it: files, ports, keys and versions agree with each other."""

from __future__ import annotations

import re
import urllib.error
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from odradek.cli.gateway_run import GatewayRun
from odradek.hosting.active_plugin import PluginState, activate
from odradek.hosting.plugin_manager import load_plugins
from odradek.programs.config import load_config
from odradek_kafka.kafka_settings import DEFAULT_TOPIC, KafkaSettings
from support.hosts import running_host
from support.reference_page import ROOT

COMPOSE = ROOT / "contrib/compose"
OTELCOL = ROOT / "contrib/otelcol"
VARIABLE = re.compile(r"\$\{env:(\w+):-([^}]*)\}")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


COMPOSED: dict[str, Any] = {
    name: read(COMPOSE / name) for name in ("compose.yaml", "gateway.yaml", "dashboards.yaml")
}
SERVICES: dict[str, Any] = COMPOSED["compose.yaml"]["services"]
ALL: dict[str, Any] = {
    f"{file}:{name}": service for file, each in COMPOSED.items() for name, service in each["services"].items()
}
KEYS = {
    *("build", "cap_drop", "command", "depends_on", "environment", "healthcheck", "image", "ports"),
    *("read_only", "restart", "security_opt", "stop_grace_period", "tmpfs", "volumes"),
}
"""Of a service, in the Compose Specification."""
HEALTH_KEYS = {"test", "interval", "timeout", "retries", "start_period"}
CONFIG = load_config(COMPOSE / "odradek.toml")
TESTS = {"otlp.yml", "alerts.test.yml", "client-alerts.test.yml", "client-recording.test.yml"}
"""Files of contrib/prometheus that are no rules."""


def mounts(service: str) -> dict[str, str]:
    """The host path of each path in the container."""
    found = {}
    for volume in SERVICES[service].get("volumes", []):
        source, target, *_ = volume.split(":")
        found[target] = source
    return found


def port(service: str) -> str:
    """The only published port of a service of compose.yaml."""
    return port_of(SERVICES[service])


def port_of(service: Any) -> str:
    """The only published port; the same inside and outside, and for this machine only."""
    (published,) = service["ports"]
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
    text = (ROOT / SERVICES["odradek"]["build"]["dockerfile"]).read_text(encoding="utf-8")
    found = re.findall(r"/src\}\[([\w,]+)\]", text)[0]

    used = {*CONFIG.plugins, *load_config(COMPOSE / "dashboards.toml").plugins}
    assert {"enrich", *used} <= set(found.split(","))


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


def test_the_prometheus_images_have_the_tested_version() -> None:
    module = (ROOT / "contrib/prometheus/go.mod").read_text(encoding="utf-8")
    (minor, patch) = re.findall(r"prometheus/prometheus v0\.3(\d\d)\.(\d+)", module)[0]

    images = {service["image"] for service in ALL.values() if "prometheus" in service.get("image", "")}
    assert images == {f"prom/prometheus:v3.{int(minor)}.{patch}"}


def test_no_image_is_latest() -> None:
    images = [service["image"] for service in ALL.values() if "image" in service]

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


@pytest.mark.parametrize("name", COMPOSED)
def test_a_file_has_known_keys_and_declares_its_volumes(name: str) -> None:
    services = COMPOSED[name]["services"]
    mounted = {
        source
        for service in services.values()
        for source in (volume.split(":")[0] for volume in service.get("volumes", []))
    }

    assert set(COMPOSED[name]) == {"services", "volumes"}
    assert {source for source in mounted if not source.startswith(".")} == set(COMPOSED[name]["volumes"])
    assert [each for each in mounted if each.startswith(".") and not (COMPOSE / each).exists()] == []
    for service in services.values():
        assert set(service) <= KEYS
        assert set(service.get("healthcheck", {})) <= HEALTH_KEYS
        for other, condition in service.get("depends_on", {}).items():
            assert condition == {"condition": "service_healthy"}
            assert "healthcheck" in services[other]


def test_prometheus_scrapes_the_host_and_its_clients() -> None:
    config = load_config(COMPOSE / "dashboards.toml")

    jobs = read(COMPOSE / "grafana/prometheus.yml")["scrape_configs"]

    clients = urlsplit(str(config.plugins["prometheus"]["listener"]))
    assert {job["job_name"]: job["static_configs"][0]["targets"] for job in jobs} == {
        "odradek": ["odradek:9464"],
        "kafka-clients": [f"odradek:{clients.port}"],
    }
    assert 'metrics.listener = "http://0.0.0.0:9464"' in (COMPOSE / "dashboards.toml").read_text("utf-8")
    assert "totals.file" not in config.plugins["prometheus"]  # so the totals are in data.dir, on the volume


def test_grafana_has_no_user_with_a_known_password() -> None:
    environment = read(COMPOSE / "dashboards.yaml")["services"]["grafana"]["environment"]

    assert environment["GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION"] == "true"
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"


def test_grafana_gets_all_dashboards_and_prometheus_all_rules() -> None:
    services = COMPOSED["dashboards.yaml"]["services"]
    mounted = {
        inside: outside
        for name in ("prometheus", "grafana")
        for outside, inside, *_ in (volume.split(":") for volume in services[name]["volumes"])
    }
    (provider,) = read(COMPOSE / "grafana/dashboards.yml")["providers"]
    (source,) = read(COMPOSE / "grafana/datasource.yml")["datasources"]
    rules = read(COMPOSE / "grafana/prometheus.yml")["rule_files"]
    home = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]

    folder = (COMPOSE / mounted[provider["options"]["path"]]).resolve()

    assert folder == ROOT / "contrib/grafana/dashboards"
    assert (folder / PurePosixPath(home).name).is_file()
    assert PurePosixPath(home).parent == PurePosixPath(provider["options"]["path"])
    assert source["url"] == f"http://prometheus:{port_of(services['prometheus'])}"
    assert [name for name in rules if not mounted[f"/etc/prometheus/{name}"].endswith(name)] == []
    assert set(rules) == {path.name for path in (ROOT / "contrib/prometheus").glob("*[a-z].yml")} - TESTS


@pytest.mark.parametrize("name", ALL)
def test_a_service_restarts_and_ours_have_no_rights(name: str) -> None:
    service = ALL[name]

    assert service["restart"] == "unless-stopped"
    if "build" in service:
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert "healthcheck" in service


@pytest.mark.parametrize("name", [name for name, service in ALL.items() if "build" in service])
def test_the_health_check_fails_while_a_host_drains(name: str, tmp_path: Path) -> None:
    program, run, code = ALL[name]["healthcheck"]["test"][1:]
    assert (program, run) == ("python", "-c")
    with running_host(tmp_path, "metrics.listener=http://127.0.0.1:0") as host:
        outlets = host.host.outlets
        assert outlets.endpoint is not None
        check = code.replace(":9464/", f":{outlets.endpoint.bound_port}/").replace("timeout=8", "timeout=30")

        exec(check)
        outlets.drain()
        with pytest.raises(urllib.error.HTTPError, match="503") as refused:
            exec(check)
        refused.value.close()


def test_the_gateway_accepts_its_configuration_and_publishes_all_its_ports() -> None:
    config = load_config(COMPOSE / "gateway.toml")

    made = GatewayRun(config)

    service = ALL["gateway.yaml:gateway"]
    assert made.config.gateway.upstream == ("kafka:9092",)
    assert service["ports"] == ["127.0.0.1:9192:9192", "127.0.0.1:9193:9193"]
    assert str(config.gateway.addressing) == "1"
    kafka = ALL["gateway.yaml:kafka"]["environment"]
    assert (kafka["KAFKA_NODE_ID"], kafka["KAFKA_ADVERTISED_LISTENERS"]) == ("1", "PLAINTEXT://kafka:9092")


@pytest.mark.parametrize(
    ("path", "enters"),
    [
        (".venv/bin/python", False),
        (".git/config", False),
        ("plugins/otlp/.pytest_cache/x", False),
        ("host/src/odradek/__pycache__/x.pyc", False),
        ("odradek-data/metadata.db", False),
        ("tests/docs/test_compose.py", False),
        ("pyproject.toml", True),
        ("README.md", True),
        ("host/src/odradek/cli/main.py", True),
        ("plugins/otlp/pyproject.toml", True),
        ("contrib/plugin-template/pyproject.toml", True),
    ],
)
def test_no_environment_or_cache_enters_the_image(path: str, enters: bool) -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    ignored = [PurePosixPath(line) for line in lines if line and not line.startswith("#")]

    parts = PurePosixPath(path).parts
    starts = [PurePosixPath(*parts[: number + 1]) for number in range(len(parts))]

    assert enters != any(matches(start, pattern) for start in starts for pattern in ignored)


def matches(path: PurePosixPath, pattern: PurePosixPath) -> bool:
    """Whether a line of ``.dockerignore`` names a path, which is anchored unless it begins with ``**``."""
    if pattern.parts[0] == "**":
        return path.match(str(PurePosixPath(*pattern.parts[1:])))
    return len(path.parts) == len(pattern.parts) and path.match(str(pattern))
