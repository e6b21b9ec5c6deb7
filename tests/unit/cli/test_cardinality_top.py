"""``odradek cardinality top``, before it asks a listener."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.cli.main import run


def test_a_file_without_certificates_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")

    status = run(["cardinality", "top", "--url", "https://127.0.0.1:1", "--ca-file", str(file)])

    assert status == 1
    said = capsys.readouterr().err
    assert f"--ca-file: expected certificates in PEM, found {file}: " in said
    assert "does not answer" not in said
