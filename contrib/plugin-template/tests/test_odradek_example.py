"""Odradek's contract for each part of the plugin, and tests of their own behavior."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
from pathlib import Path

import pytest

from odradek.plugin import ClientTelemetryContext, ConfigError, PluginConfig
from odradek.testing import request_context
from odradek.testing.contracts import (
    EnricherContract,
    ExporterContract,
    FarSideState,
    ForwarderContract,
    ReceiverContract,
    Samples,
    Subject,
)
from odradek_example import odradek_client_telemetry, odradek_enricher, odradek_forwarder
from odradek_example.example_enricher import ExampleEnricher
from odradek_example.example_exporter import ExampleExporter
from odradek_example.example_forwarder import ExampleForwarder
from odradek_example.example_receiver import ExampleReceiver


class TestReceiver(ReceiverContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return Subject(make=ExampleReceiver)


class TestExporter(ExporterContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return Subject(make=ExampleExporter)


class TestEnricher(EnricherContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return Subject(make=lambda: ExampleEnricher({"alice": "payments"}))


class FileSide:
    """A file as the destination. It is down when its folder is missing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.kept = ""

    def turn(self, state: FarSideState) -> None:
        if state in (FarSideState.UP, FarSideState.SLOW):  # there is no slow file
            self.path.parent.mkdir(exist_ok=True)
            return
        self.kept += self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        shutil.rmtree(self.path.parent, ignore_errors=True)

    def received(self) -> list[bytes]:
        text = self.kept + (self.path.read_text(encoding="utf-8") if self.path.exists() else "")
        return [base64.b64decode(json.loads(row)["data"]) for row in text.splitlines()]


class TestForwarder(ForwarderContract):
    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        path = tmp_path / "folder" / "pushes.jsonl"
        return Subject(
            make=lambda: ExampleForwarder(path), far_side=FileSide(path), declares=frozenset({"concurrent"})
        )


def test_pushes_are_counted_by_client_software() -> None:
    receiver = ExampleReceiver()

    for record in Samples().pushes(3):
        receiver.export_metrics(record.context, record.payload)

    assert receiver.pushes == {"unknown": 3}


def test_pushes_are_counted_by_push_interval() -> None:
    exporter = ExampleExporter()

    for record in Samples().pushes(3):
        exporter.export_metrics(ClientTelemetryContext(5000, record.context), record.payload)

    assert exporter.pushes == {5000: 3}


@pytest.mark.parametrize(("user", "team"), [("alice", "payments"), ("bob", "unknown")])
def test_a_client_has_the_team_of_its_user(user: str, team: str) -> None:
    enricher = ExampleEnricher({"alice": "payments"})

    labels = enricher.labels(bytes(16), request_context(principal=f"User:{user}"))

    assert labels == {"team": team}


def test_a_push_is_a_line(tmp_path: Path) -> None:
    record = Samples().push()

    asyncio.run(ExampleForwarder(tmp_path / "pushes.jsonl").deliver([record]))

    row = json.loads((tmp_path / "pushes.jsonl").read_text(encoding="utf-8"))
    assert row["client_id"] == record.context.client_id
    assert base64.b64decode(row["data"]) == record.payload.data


def test_without_a_path_there_is_no_forwarder() -> None:
    assert odradek_forwarder(PluginConfig("plugins.example", {})) is None


def test_the_folder_of_the_path_must_exist() -> None:
    with pytest.raises(ConfigError, match=r"plugins\.example\.path: expected a file in an existing folder"):
        odradek_forwarder(PluginConfig("plugins.example", {"path": "/nowhere/at/all"}))


def test_without_teams_there_is_no_enricher() -> None:
    assert odradek_enricher(PluginConfig("plugins.example", {})) is None


@pytest.mark.parametrize(
    ("count", "kind"),
    [("software", ExampleReceiver), ("intervals", ExampleExporter), ("nothing", type(None))],
)
def test_the_table_chooses_what_is_counted(count: str, kind: type) -> None:
    assert isinstance(odradek_client_telemetry(PluginConfig("plugins.example", {"count": count})), kind)
