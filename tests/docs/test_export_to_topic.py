"""The commands of ``howto/export-to-topic.md`` do what the page says."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

from confluent_kafka import Producer
from contrib.capture.ports import free_port

from odradek.plugin import PluginConfig
from odradek.programs.config import load_config
from odradek_kafka import odradek_forwarder
from support.hosts import ServeProcess
from support.reference_page import blocks

PAGE = "howto/export-to-topic.md"
ADDRESS = "localhost:9092"
INTERVAL, QUICK_INTERVAL = '"interval.ms" = 5000', '"interval.ms" = 200'
PATIENCE_S = 20.0


def texts(language: str) -> list[str]:
    """The blocks in a language, in order."""
    return [text for found, text in blocks(PAGE) if found == language]


def run(arguments: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def until_printed(command: str, expected: str, folder: Path) -> None:
    """Repeat a command of the page until it prints the output on the page."""
    program, *arguments = shlex.split(command)
    assert program == "odradek"
    end_s = time.monotonic() + PATIENCE_S
    while (printed := run(["-m", "odradek", *arguments], folder)) != expected:
        assert time.monotonic() < end_s, printed
        time.sleep(0.1)


def test_each_step_works_as_on_the_page(tmp_path: Path) -> None:
    address = f"localhost:{free_port()}"
    own, elsewhere = texts("toml")
    serve_command, list_command, _ = texts("sh")
    (listed,) = texts("")
    (reader,) = texts("python")
    (tmp_path / "export.toml").write_text(own.replace(ADDRESS, address).replace(INTERVAL, QUICK_INTERVAL))
    (tmp_path / "reader.py").write_text(reader.replace(ADDRESS, address))

    program, verb, option, name = shlex.split(serve_command)
    serve = ServeProcess(option, str(tmp_path / name), "--set", f"data.dir={tmp_path / 'data'}")
    try:
        producer = Producer({"bootstrap.servers": address, "client.id": "orders"})
        producer.produce("orders", b"1")
        producer.flush(PATIENCE_S)
        until_printed(list_command.replace(ADDRESS, address), listed, tmp_path)
        printed = run(["reader.py"], tmp_path).splitlines()
        producer.close()
    finally:
        status = serve.terminate()

    assert (program, verb, status) == ("odradek", "serve", 0)
    assert [line.split()[0] for line in printed] == ["key", "client_id", "resources"]
    assert printed[1:] == ["client_id orders", "resources 1"]
    assert elsewhere.startswith("[plugins.kafka]")


def test_the_table_for_another_cluster_is_valid(tmp_path: Path) -> None:
    file, secret = tmp_path / "odradek.toml", tmp_path / "kafka.password"
    secret.write_text("of this test\n")
    secret.chmod(0o600)
    file.write_text(texts("toml")[1].replace(f"/etc/odradek/{secret.name}", str(secret)))

    table = load_config(file).plugins["kafka"]

    assert odradek_forwarder(PluginConfig("plugins.kafka", table)) is not None
