"""``contrib/helm``: what the chart renders is what the commands accept, and its objects fit each other.

The manifests are kept as ``rendered/``, so that these tests need no Helm; with Helm they are rendered again.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from contrib.helm.helm import HELM
from contrib.helm.render import CHART, RENDERED, VALUES, digest, helm, rendered

from odradek import __version__
from odradek.cli.gateway_run import GatewayRun
from odradek.hosting.active_plugin import PluginState, activate
from odradek.hosting.plugin_manager import load_plugins
from odradek.meters.metrics_settings import MetricsAddress
from odradek.programs.config import HostConfig, load_config
from support.certificates import Files
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
    certificates = folder / "certificates"
    certificates.mkdir()
    files = Files(certificates)
    text = stored["data"]["odradek.toml"].replace("/etc/odradek/secrets/host-tls/tls.pem", str(files.server))
    path = folder / "odradek.toml"
    path.write_text(text, encoding="utf-8")
    upstream = options.get("upstream")
    own = [] if upstream is None else [f"gateway.upstream={upstream}"]
    overrides = own + [
        each.replace("$(POD_NAME)", "odradek-0").replace("/var/lib/odradek", str(folder))
        for each in options["overrides"]
    ]
    return load_config(path, overrides, options["plugins"])


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
        claim["metadata"]["name"]
        for each in of_kind(name, "StatefulSet")
        for claim in each["spec"]["volumeClaimTemplates"]
    }
    existing = {(each["kind"], each["metadata"]["name"]) for each in MANIFESTS[name]}
    for part, template in pods(name):
        volumes = {each["name"]: each for each in template["spec"]["volumes"]}
        mounts = {each["name"] for each in container(template)["volumeMounts"]}

        assert mounts == set(volumes) | (claims if part == "host" else set())
        for volume in volumes.values():
            if "configMap" in volume:
                assert ("ConfigMap", volume["configMap"]["name"]) in existing
                assert "checksum/config" in template["metadata"]["annotations"]
            if "persistentVolumeClaim" in volume:
                claim = volume["persistentVolumeClaim"]["claimName"]
                assert ("PersistentVolumeClaim", claim) in existing


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


def test_a_gateway_has_a_port_for_each_broker(tmp_path: Path) -> None:
    name = "everything.yaml"
    (template,) = [template for part, template in pods(name) if part == "gateway"]
    config = config_of(name, "gateway", options_of(container(template)["args"], tmp_path)[1], tmp_path)
    (service,) = [each for each in of_kind(name, "Service") if each["metadata"]["name"] == "odradek-gateway"]

    ports = {each["name"]: each["port"] for each in service["spec"]["ports"]}

    assert ports == {"kafka": 19092, **{f"node-{101 + each}": 19093 + each for each in range(4)}}
    assert str(config.gateway.addressing) == "101-104"


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


def user_id() -> int:
    """The user of the image."""
    text = (ROOT / "contrib/container/Containerfile").read_text(encoding="utf-8")
    (found,) = {int(each) for each in re.findall(r"^USER (\d+):\d+$", text, re.MULTILINE)}
    return found


USER_ID = user_id()
