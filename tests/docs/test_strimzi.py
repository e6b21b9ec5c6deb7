"""``contrib/strimzi``: what the gateway of a Strimzi cluster reads is what the program accepts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from contrib.strimzi.observe import DASHBOARDS, LABEL, objects

from odradek.cli.gateway_run import GatewayRun
from odradek.client.command_config import load_command_config
from odradek.hosting.active_plugin import PluginState, activate
from odradek.hosting.plugin_manager import load_plugins
from odradek.net.listener_tls import ListenerTls
from odradek.plugin.authorizer import AclOperation
from odradek.programs.config import load_config
from support.certificates import Files, authority
from support.command_lines import parsed
from support.json_schema import misfits
from support.reference_page import ROOT

pytestmark = pytest.mark.ci

Object = dict[str, Any]
FOLDER = ROOT / "contrib/strimzi"
FILES: list[Object] = [
    each for name in ("user.yaml", "gateway.yaml") for each in yaml.safe_load_all((FOLDER / name).read_text())
]
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
JAAS = f'{MODULE} required username="odradek-gateway" password="p";'
TEXT = {"type": "string"}
SCHEMAS: dict[tuple[str, str], Object] = {
    ("kafka.strimzi.io/v1", "KafkaUser"): {
        "required": ["authentication", "authorization"],
        "additionalProperties": False,
        "properties": {
            "authentication": {"properties": {"type": {"enum": ["tls", "tls-external", "scram-sha-512"]}}},
            "authorization": {
                "required": ["acls", "type"],
                "properties": {
                    "type": {"const": "simple"},
                    "acls": {
                        "items": {
                            "required": ["resource", "operations"],
                            "additionalProperties": False,
                            "properties": {
                                "operations": {"type": "array", "minItems": 1, "items": TEXT},
                                "resource": {
                                    "required": ["type"],
                                    "additionalProperties": False,
                                    "properties": {
                                        "type": {"enum": ["topic", "group", "cluster", "transactionalId"]},
                                        "name": TEXT,
                                        "patternType": {"enum": ["literal", "prefix"]},
                                    },
                                },
                            },
                        }
                    },
                },
            },
        },
    },
    ("kafka.strimzi.io/v1", "KafkaTopic"): {
        "additionalProperties": False,
        "properties": {
            "partitions": {"type": "integer"},
            "replicas": {"type": "integer"},
            "config": {"type": "object"},
        },
    },
    ("monitoring.coreos.com/v1", "PodMonitor"): {
        "required": ["selector", "podMetricsEndpoints"],
        "additionalProperties": False,
        "properties": {
            "selector": {"required": ["matchLabels"]},
            "podMetricsEndpoints": {
                "items": {
                    "additionalProperties": False,
                    "properties": {"port": TEXT, "interval": TEXT, "honorLabels": {"type": "boolean"}},
                }
            },
        },
    },
    ("monitoring.coreos.com/v1", "PrometheusRule"): {
        "required": ["groups"],
        "properties": {
            "groups": {
                "items": {
                    "required": ["name", "rules"],
                    "additionalProperties": False,
                    "properties": {
                        "name": TEXT,
                        "interval": TEXT,
                        "rules": {
                            "items": {
                                "required": ["expr"],
                                "additionalProperties": False,
                                "properties": {
                                    "expr": TEXT,
                                    "alert": TEXT,
                                    "record": TEXT,
                                    "for": TEXT,
                                    "keep_firing_for": TEXT,
                                    "labels": {"additionalProperties": TEXT},
                                    "annotations": {"additionalProperties": TEXT},
                                },
                            }
                        },
                    },
                }
            }
        },
    },
}
"""The parts of the specifications that are used, as the operators' definitions have them."""


def of_kind(kind: str) -> Object:
    (found,) = (each for each in FILES if each["kind"] == kind)
    return found


def pod() -> Object:
    return dict(of_kind("StatefulSet")["spec"]["template"]["spec"])


@pytest.fixture
def mounted(tmp_path: Path) -> tuple[Path, Files]:
    """The files of the pod, and ``upstream.properties`` as its init container writes it."""
    files = Files(tmp_path)
    folders = {each: tmp_path / each for each in ("config", "user", "tls", "cluster-ca", "run")}
    for folder in folders.values():
        folder.mkdir()
    for name, text in of_kind("ConfigMap")["data"].items():
        (folders["config"] / name).write_text(here(text, tmp_path))
    (folders["user"] / "sasl.jaas.config").write_text(JAAS)
    (folders["cluster-ca"] / "ca.crt").write_text(Path(files.ca).read_text())
    names = of_kind("Certificate")["spec"]["dnsNames"]
    (folders["tls"] / "tls-combined.pem").write_text(authority().issue("gateway", names).both)
    command = pod()["initContainers"][0]["command"]
    subprocess.run([*command[:-1], here(command[-1], tmp_path)], check=True, timeout=30)
    return tmp_path, files


def here(text: str, folder: Path) -> str:
    """A text of the pod with the folders of this machine."""
    text = text.replace("/run/odradek", str(folder / "run")).replace("/var/lib/odradek", str(folder))
    return text.replace("/etc/odradek/", f"{folder}/")


def test_the_gateway_takes_its_file_and_logs_in_as_its_user(mounted: tuple[Path, Files]) -> None:
    folder, _ = mounted
    (container,) = pod()["containers"]
    command, options = parsed([here(each, folder) for each in container["args"]])
    overrides = [each.replace("$(POD_NAME)", "odradek-gateway-0") for each in options["overrides"]]
    config = load_config(options["config_file"], overrides, options["plugins"])

    made = GatewayRun(config)
    ((listener, routing),) = made.routings.items()
    routing.secure(ListenerTls(listener, config.of_listener(config.tls, listener)))
    active = activate(load_plugins(), config.plugins, config.requested_plugins)

    assert command == "gateway"
    assert made.connection.login is not None
    assert made.connection.login.user == of_kind("KafkaUser")["metadata"]["name"]
    assert made.connection.tls is not None
    assert {"kafka", "prometheus"} <= {each.name for each in active if each.state is PluginState.ACTIVE}
    assert config.plugins["kafka"]["topic"] == of_kind("KafkaTopic")["metadata"]["name"]


def test_the_login_is_readable_by_its_user_alone(mounted: tuple[Path, Files]) -> None:
    path = mounted[0] / "run/upstream.properties"

    assert load_command_config(path).login is not None
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("each", [*FILES, *objects()], ids=lambda each: each["metadata"]["name"])
def test_objects_fit_the_schemas_of_their_operators(each: Object) -> None:
    schema = SCHEMAS.get((each["apiVersion"], each["kind"]))

    assert each["apiVersion"]
    assert schema is None or misfits(each["spec"], schema) == []
    assert len(json.dumps(each)) < 1_000_000  # the limit of an object in Kubernetes is 1 MiB


def test_the_rights_are_operations_of_kafka() -> None:
    acls = of_kind("KafkaUser")["spec"]["authorization"]["acls"]
    names = {each.name.replace("_", "").lower() for each in AclOperation}

    assert {operation.lower() for acl in acls for operation in acl["operations"]} <= names
    assert {"type": "cluster"} in [acl["resource"] for acl in acls if "DescribeConfigs" in acl["operations"]]


def test_monitors_services_and_mounts_find_the_pod() -> None:
    (container,) = pod()["containers"]
    labels = of_kind("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    ports = {port["name"] for port in container["ports"]}
    monitor, service = of_kind("PodMonitor")["spec"], of_kind("Service")["spec"]
    volumes = {each["name"] for each in pod()["volumes"]} | {
        each["metadata"]["name"] for each in of_kind("StatefulSet")["spec"]["volumeClaimTemplates"]
    }

    assert {each["port"] for each in monitor["podMetricsEndpoints"]} <= ports
    assert {each["targetPort"] for each in service["ports"]} <= ports
    assert monitor["selector"]["matchLabels"] == service["selector"] == labels
    for each in (container, *pod()["initContainers"]):
        assert {mount["name"] for mount in each["volumeMounts"]} <= volumes


def test_each_dashboard_is_a_config_map_and_each_alert_a_rule() -> None:
    found = list(objects())
    maps = [each for each in found if each["kind"] == "ConfigMap"]

    assert {name for each in maps for name in each["data"]} == {
        each.name for each in DASHBOARDS.glob("*.json")
    }
    assert all(each["metadata"]["labels"] == LABEL for each in maps)
    assert sum(each["kind"] == "PrometheusRule" for each in found) == 3
