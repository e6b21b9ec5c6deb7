"""The blocks of ``howto/authenticate-with-tokens.md`` do what the page says."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from support.hosts import ServeProcess
from support.issuer import issuing
from support.reference_page import blocks

PAGE = "howto/authenticate-with-tokens.md"
PORT = "9094"


def text(language: str) -> str:
    """The only block in a language."""
    (found,) = [text for name, text in blocks(PAGE) if name == language]
    return found


def test_each_block_works_as_on_the_page(tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka")
    with issuing() as issuer:
        settings = text("toml").replace("https://issuer.example.com/keys", issuer.url("/keys"))
        (tmp_path / "odradek.toml").write_text(settings.replace(PORT, "0"))
        token = tmp_path / "token"
        token.write_text(issuer.token(iss="https://issuer.example.com", aud="kafka"))
        properties = text("properties").replace("file:///run/odradek/token", token.as_uri())
        (tmp_path / "token.properties").write_text(properties)
        data = f"data.dir={tmp_path / 'odradek-data'}"
        serve = ServeProcess("--config", str(tmp_path / "odradek.toml"), "--set", data)
        try:
            port = serve.bootstrap.rpartition(":")[2]
            program = text("python").replace(PORT, port)
            produced = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, timeout=60, check=False)
            listed = subprocess.run(
                [sys.executable, "-m", *shlex.split(text("sh").replace(PORT, port))],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
        finally:
            status = serve.terminate()

    assert produced.returncode == 0
    assert "orders" in listed.stdout
    assert status == 0
