"""The built-in plugin fulfills the receiver contract."""

from __future__ import annotations

import io

import pytest

from odradek.hosting.stdout_receiver import StdoutReceiver
from odradek.testing.contracts import ExporterContract, Subject


class TestStdoutReceiver(ExporterContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return Subject(make=lambda: StdoutReceiver(io.StringIO()))
