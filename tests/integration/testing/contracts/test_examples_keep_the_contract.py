"""The plugins in the examples follow the contract."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from odradek.plugin import PluginConfig
from odradek.testing.contracts import (
    EnricherContract,
    ExporterContract,
    ForwarderContract,
    QuotaCallbackContract,
    Subject,
)

EXAMPLES = Path(__file__).parents[4] / "examples"


def example(name: str) -> Any:
    """Import the module of an example without running it."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestTeamEnricher(EnricherContract):
    @pytest.fixture
    def subject(self) -> Subject:
        enricher = example("02_enrich_with_team").TeamEnricher
        return Subject(make=lambda: enricher("-", "nobody"))


class TestTenantQuotas(QuotaCallbackContract):
    @pytest.fixture
    def subject(self) -> Subject:
        quotas = example("05_tenant_quotas").TenantQuotas
        return Subject(
            make=lambda: quotas().odradek_quota_callback(PluginConfig("plugins.tenants", {})),
            declares=frozenset({"updates"}),
        )


class TestPushMeter(ExporterContract):
    @pytest.fixture
    def subject(self) -> Subject:
        meter = example("07_export_pushes").PushMeter
        return Subject(make=lambda: meter())


class TestFileForwarder(ForwarderContract):
    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        forwarder = example("08_forward_to_a_file").FileForwarder
        return Subject(make=lambda: forwarder(tmp_path / "pushes.jsonl"), declares=frozenset({"concurrent"}))
