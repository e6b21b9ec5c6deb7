"""``contrib/helm``: what the chart renders is what the commands accept, and its objects fit each other.

The manifests are kept as ``rendered/``, so that these tests need no Helm; with Helm they are rendered again.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from contrib.helm.helm import HELM
from contrib.helm.render import CHART, RENDERED, VALUES, digest, helm, rendered

from odradek import __version__
from odradek.cli.gateway_run import GatewayRun
from odradek.hosting.active_plugin import PluginState, activate
from odradek.hosting.plugin_manager import load_plugins
from odradek.meters.metrics_settings import MetricsAddress
from odradek.process.log_format import LEVELS
from odradek.programs.config import HostConfig, load_config
from support.certificates import Files, authority
from support.command_lines import parsed
from support.reference_page import ROOT

Object = dict[str, Any]
NAMES = sorted(path.name for path in VALUES.glob("*.yaml"))
FILES = {name: (RENDERED / name).read_text(encoding="utf-8") for name in NAMES}
MANIFESTS: dict[str, list[Object]] = {
    name: [each for each in yaml.safe_load_all(text) if each] for name, text in FILES.items()
}
PIPELINE = "pipeline"
every_file = pytest.mark.parametrize("name", NAMES)


def of_kind(name: str, *kinds: str) -> list[Object]:
    return [each for each in MANIFESTS[name] if each["kind"] in kinds]


def pods(name: str) -> Iterator[tuple[str, Object]]:
    """The templates of the pods, by part."""
    for each in of_kind(name, "StatefulSet", "Deployment", "CronJob"):
        spec = each["spec"]
        template = spec["jobTemplate"]["spec"]["template"] if each["kind"] == "CronJob" else spec["template"]
        yield template["metadata"]["labels"]["app.kubernetes.io/component"], template


def container(template: Object) -> Object:
    (found,) = template["spec"]["containers"]
    return dict(found)


PARTS = [(name, part) for name in NAMES for part, _ in pods(name)]


def options_of(arguments: list[str], folder: Path) -> tuple[str, dict[str, Any]]:
    """The command of a container and its options. Secrets are files of this machine."""
    secret = folder / "secret"
    secret.touch()
    return parsed([re.sub(r"=/etc/odradek/secrets/.*", f"={secret}", each) for each in arguments])


def config_of(name: str, part: str, options: dict[str, Any], folder: Path) -> HostConfig:
    """The configuration that a pod reads, with files in a folder of this machine."""
    (stored,) = [
        each
        for each in of_kind(name, "ConfigMap")
        if each["metadata"]["labels"]["app.kubernetes.io/component"] == part
    ]
    secrets = folder / "secrets"
    certificates = {"host-tls": ["odradek"], "gateway-tls": ["kafka.example.com", "*.kafka.example.com"]}
    for secret, names in certificates.items():
        (secrets / secret).mkdir(parents=True)
        Files(secrets / secret).write("tls.pem", authority().issue(secret, names).both)
    (secrets / "upstream").mkdir()
    (secrets / "upstream/upstream.properties").touch()
    text = stored["data"]["odradek.toml"].replace("/etc/odradek/secrets", str(secrets))
    path = folder / "odradek.toml"
    path.write_text(text, encoding="utf-8")
    upstream = options.get("upstream")
    own = [] if upstream is None else [f"gateway.upstream={upstream}"]
    overrides = own + [
        in_container(each).replace("/var/lib/odradek", str(folder)) for each in options["overrides"]
    ]
    return load_config(path, overrides, options["plugins"])


def in_container(argument: str) -> str:
    """What Kubernetes makes of an argument: variables that it knows, and one $ of two."""
    return argument.replace("$(POD_NAME)", "odradek-0").replace("$$(", "$(")


@every_file
def test_the_manifests_are_those_of_this_chart(name: str) -> None:
    assert FILES[name].startswith(f"# {digest(VALUES / name)}\n"), "run python -m contrib.helm.render"


@pytest.mark.slow
def test_helm_finds_no_fault_and_renders_the_same() -> None:
    program = HELM.kept
    if not program.exists():
        pytest.skip("it takes minutes to build: python -m contrib.helm.helm")

    for name in NAMES:
        helm(program, "lint", str(CHART), "--strict", "--values", str(VALUES / name))
        assert rendered(program, VALUES / name) == FILES[name]
    for setting in (
        "gateway.enabled=true",
        "forward.enabled=true",
        "pipeline.enabled=true",
        "hosts.replicas=2",
        "gateway.nodes=0-",
        "gateway.enabled=true,gateway.upstream={kafka:9092},gateway.nodeNames=b$(nodeId).example.com",
    ):
        with pytest.raises(subprocess.CalledProcessError):
            helm(program, "template", "odradek", str(CHART), "--set", setting)


def test_the_chart_has_the_version_of_the_host() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))

    assert chart["appVersion"] == __version__


@pytest.mark.parametrize(("name", "part"), PARTS)
def test_the_command_accepts_its_arguments_and_configuration(name: str, part: str, tmp_path: Path) -> None:
    arguments = [container(template)["args"] for found, template in pods(name) if found == part]

    command, options = options_of(arguments[0], tmp_path)

    if part == PIPELINE:
        assert command in ("run", "ingest")
        return
    config = config_of(name, part, options, tmp_path)
    active = activate(load_plugins(), config.plugins, config.requested_plugins)
    assert set(config.plugins) <= {each.name for each in active if each.state is PluginState.ACTIVE}
    assert config.metrics_listener == MetricsAddress("0.0.0.0", 9464)
    if part == "gateway":
        GatewayRun(config)


@every_file
def test_containers_have_no_rights(name: str) -> None:
    for _, template in pods(name):
        pod, own = template["spec"]["securityContext"], container(template)["securityContext"]

        assert pod["runAsNonRoot"]
        assert pod["runAsUser"] == pod["runAsGroup"] == pod["fsGroup"] == USER_ID
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not own["allowPrivilegeEscalation"]
        assert own["readOnlyRootFilesystem"]
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert not template["spec"]["automountServiceAccountToken"]
        assert {"requests", "limits"} <= set(container(template)["resources"])


@every_file
def test_mounts_have_volumes_and_configurations_exist(name: str) -> None:
    claims = {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: {
            claim["metadata"]["name"] for claim in each["spec"]["volumeClaimTemplates"]
        }
        for each in of_kind(name, "StatefulSet")
    }
    existing = {(each["kind"], each["metadata"]["name"]) for each in MANIFESTS[name]}
    for part, template in pods(name):
        volumes = {each["name"]: each for each in template["spec"]["volumes"]}
        mounts = {each["name"] for each in container(template)["volumeMounts"]}

        assert mounts == set(volumes) | claims.get(part, set())
        for volume in volumes.values():
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in existing
                assert "checksum/config" in template["metadata"]["annotations"]
            if "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                assert ("PersistentVolumeClaim", claim) in existing


@pytest.mark.parametrize(("name", "part"), [each for each in PARTS if each[1] in ("host", "gateway")])
def test_what_must_not_be_lost_is_on_a_volume_of_the_replica(name: str, part: str, tmp_path: Path) -> None:
    """Pushes that wait, and the totals of clients, which the plugins keep in the data directory."""
    (found,) = [each for each in of_kind(name, "StatefulSet") if each["metadata"]["name"].endswith(part)]
    template = found["spec"]["template"]
    config = config_of(name, part, options_of(container(template)["args"], tmp_path)[1], tmp_path)
    (mount,) = [each for each in container(template)["volumeMounts"] if each["name"] == "data"]
    services = {each["metadata"]["name"] for each in of_kind(name, "Service")}

    assert config.data_dir.is_relative_to(mount["mountPath"].replace("/var/lib/odradek", str(tmp_path)))
    assert found["spec"]["serviceName"] in services


@every_file
def test_services_and_budgets_find_their_pods(name: str) -> None:
    found = [(template["metadata"]["labels"], container(template)) for _, template in pods(name)]
    selecting = of_kind(name, "Service", "PodDisruptionBudget")
    for each in selecting:
        selector = each["spec"]["selector"].get("matchLabels", each["spec"]["selector"])
        ((_, target),) = [one for one in found if selector.items() <= one[0].items()]
        names = {port["name"] for port in target.get("ports", [])}
        for port in each["spec"].get("ports", []):
            assert port["targetPort"] in names or isinstance(port["targetPort"], int)

    parts = {part for part, _ in pods(name)} - {PIPELINE}
    assert len([each for each in selecting if each["kind"] == "PodDisruptionBudget"]) == len(parts)


@every_file
def test_probes_ask_the_metrics_listener(name: str) -> None:
    for _, template in pods(name):
        asked = {
            kind: probe["httpGet"]
            for kind, probe in container(template).items()
            if kind in ("startupProbe", "readinessProbe", "livenessProbe")
        }
        if "--once" in container(template)["args"]:  # a job, which ends
            assert asked == {}
            continue

        assert {probe["path"] for probe in asked.values()} == {"/readyz", "/healthz"}
        assert asked["livenessProbe"]["path"] == "/healthz"
        assert {"name": "metrics", "containerPort": 9464} in container(template)["ports"]


def gateway_of(name: str, folder: Path) -> tuple[HostConfig, dict[str, int]]:
    """The configuration of a gateway, and the ports of its Service."""
    (template,) = [template for part, template in pods(name) if part == "gateway"]
    config = config_of(name, "gateway", options_of(container(template)["args"], folder)[1], folder)
    (service,) = [each for each in of_kind(name, "Service") if each["metadata"]["name"] == "odradek-gateway"]
    return config, {each["name"]: each["port"] for each in service["spec"]["ports"]}


def test_a_gateway_has_a_port_for_each_broker_where_the_program_listens(tmp_path: Path) -> None:
    config, ports = gateway_of("everything.yaml", tmp_path)

    nodes = [0, 1, 7, 101, 102, 103, 104]
    assert str(config.gateway.addressing) == "0-1,7,101-104"
    addressing = config.gateway.addressing
    first = addressing.port_start or 0
    listening = {f"node-{node}": first + (addressing.mapped.place(node) or 0) for node in nodes}
    assert ports == {"kafka": 19092} | listening


def test_a_gateway_with_names_needs_one_port(tmp_path: Path) -> None:
    config, ports = gateway_of("names.yaml", tmp_path)

    assert ports == {"kafka": 9443, "clients": 9404}
    names = config.gateway.addressing.names
    assert names is not None
    assert names.name(3) == "b3.kafka.example.com"


def test_the_service_monitor_finds_the_metrics_of_all_parts() -> None:
    (monitor,) = of_kind("everything.yaml", "ServiceMonitor")
    selector = monitor["spec"]["selector"]["matchLabels"]

    selected = [
        each["metadata"]["name"]
        for each in of_kind("everything.yaml", "Service")
        if selector.items() <= each["metadata"]["labels"].items()
    ]

    assert selected == [f"odradek-{part}-metrics" for part in ("host", "gateway", "forward", PIPELINE)]
    assert {each["port"] for each in monitor["spec"]["endpoints"]} == {"metrics"}


def test_the_service_monitor_finds_the_clients_of_a_gateway_as_a_job_of_their_own() -> None:
    (monitor,) = of_kind("names.yaml", "ServiceMonitor")
    (service,) = [
        each
        for each in of_kind("names.yaml", "Service")
        if each["metadata"]["name"] == "odradek-gateway-metrics"
    ]

    endpoints = {each["port"]: each for each in monitor["spec"]["endpoints"]}

    assert set(endpoints) == {port["name"] for port in service["spec"]["ports"]} == {"metrics", "clients"}
    assert endpoints["clients"]["relabelings"] == [{"targetLabel": "job", "replacement": "kafka-clients"}]


def leaves(values: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys of values that have no keys themselves. What Kubernetes defines is a leaf."""
    if isinstance(values, dict) and values and path[-1:] != ("resources",):
        for key, value in values.items():
            yield from leaves(value, (*path, key))
    else:
        yield path


def commented() -> set[str]:
    """The keys of values.yaml that have a comment, at their line or above it."""
    lines = (CHART / "values.yaml").read_text(encoding="utf-8").splitlines()
    return {
        match[1]
        for before, line in pairwise(lines)
        if (match := re.match(r" *(\w+):", line)) and ("  # " in line or before.strip().startswith("# "))
    }


def test_every_value_says_what_it_is() -> None:
    """Once: the same key of another part means the same."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))

    assert {path[-1] for path in leaves(values)} - commented() == set()


def resolved(schema: Object, whole: Object) -> Object:
    """A schema with the definition that it names."""
    name = schema.get("$ref", "")
    return dict(whole["definitions"][name.removeprefix("#/definitions/")]) if name else schema


def described(schema: Object, whole: Object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys of a schema that have no keys themselves."""
    found = resolved(schema, whole)
    for key, each in found.get("properties", {}).items():
        yield from described(each, whole, (*path, key))
    if "properties" not in found:
        yield path


def test_the_schema_has_the_keys_of_the_values_and_takes_them() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))

    assert set(described(schema, schema)) - {("global",)} == set(leaves(values))
    assert schema["properties"]["logLevel"]["enum"] == list(LEVELS)
    jsonschema.validate(values, schema)
    for name in NAMES:
        jsonschema.validate(yaml.safe_load((VALUES / name).read_text(encoding="utf-8")), schema)


def user_id() -> int:
    """The user of the image."""
    text = (ROOT / "contrib/container/Containerfile").read_text(encoding="utf-8")
    (found,) = {int(each) for each in re.findall(r"^USER (\d+):\d+$", text, re.MULTILINE)}
    return found


USER_ID = user_id()
