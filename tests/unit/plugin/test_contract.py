"""The public interface for plugins is complete, and its docstrings are true."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import pytest

import odradek.plugin
from odradek.plugin import (
    ClientQuotaCallback,
    ClientQuotaEntity,
    ClientQuotaType,
    ClientTelemetry,
    ClientTelemetryContext,
    ClientTelemetryExporter,
    ClientTelemetryExporterProvider,
    ClientTelemetryPayload,
    Enricher,
    Forwarder,
    Intake,
    Reject,
    RequestContext,
    Retry,
    Source,
    TelemetryRecord,
    hookspecs,
)


class Everything:
    """Offers and implements every kind of plugin."""

    def client_receiver(self) -> None:
        return None

    def client_telemetry_exporter(self) -> Everything:
        return self

    def export_metrics(self, context: ClientTelemetryContext, payload: ClientTelemetryPayload) -> None:
        return None

    def labels(self, client_instance_id: bytes, context: RequestContext) -> Mapping[str, str]:
        return {}

    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Mapping[str, str]:
        return {}

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        return None

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        return None

    def remove_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity) -> None:
        return None

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        return False

    async def start(self) -> None:
        return None

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        return None

    async def close(self) -> None:
        return None

    async def run(self, intake: Intake) -> None:
        return None

    def lag(self) -> int | None:
        return None


PROTOCOLS = [
    ClientTelemetry,
    ClientTelemetryExporterProvider,
    ClientTelemetryExporter,
    ClientQuotaCallback,
    Enricher,
    Forwarder,
    Source,
]
HOOKS = [
    "odradek_authorizer",
    "odradek_client_telemetry",
    "odradek_companion",
    "odradek_enricher",
    "odradek_forwarder",
    "odradek_principal_builder",
    "odradek_quota_callback",
    "odradek_source",
    "odradek_topic_writer",
]


def test_everything_public_is_importable() -> None:
    names = odradek.plugin.__all__

    missing = [name for name in names if not hasattr(odradek.plugin, name)]

    assert missing == []
    assert names == sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_object_with_the_methods_fulfills_the_protocol(protocol: type) -> None:
    plugin = Everything()

    found = isinstance(plugin, protocol)

    assert found
    assert not isinstance(object(), protocol)


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_takes_the_configuration_and_documents_its_errors(hook: str) -> None:
    specification = getattr(hookspecs, hook)

    parameters = list(inspect.signature(specification).parameters)

    assert parameters == ["config"]
    assert "ConfigError" in (inspect.getdoc(specification) or "")


def test_there_are_no_other_hooks() -> None:
    names = [name for name in vars(hookspecs) if name.startswith("odradek_")]

    documented = [name for name in names if inspect.getdoc(getattr(hookspecs, name))]

    assert sorted(names) == HOOKS
    assert documented == names


def test_the_errors_of_a_forwarder_have_the_fields_the_host_needs() -> None:
    retry, reject = Retry("busy", 2.5), Reject("bad")

    found = (str(retry), retry.after_s, str(reject), list(reject.records))

    assert found == ("busy", 2.5, "bad", [])
    assert Retry("busy").after_s is None
