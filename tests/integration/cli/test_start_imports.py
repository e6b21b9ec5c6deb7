"""Modules that a host without security, exports and datasets does not import: each makes starts slower."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.hosts import ServeProcess
from support.wire_client import WireClient

NOT_IMPORTED = (
    # third-party libraries
    "aiohttp",
    "confluent_kafka",
    "cryptography",
    "deltalake",
    "grpc",
    "jwt",
    "numpy",
    "opentelemetry.sdk",
    "prometheus_client",
    "pyarrow",
    "pyspark",
    # what comes with the first request of an API
    "odradek.broker.flush_wait",
    "odradek.wire.messages.find_coordinator",
    "odradek.wire.messages.metadata",
    "odradek.wire.messages.produce",
    # TLS and load balancers
    "odradek.security.certificate",
    "odradek.security.key_store",
    "odradek.net.handshakes",
    "odradek.net.listener_tls",
    "odradek.net.proxy_headers",
    "odradek.net.tls_transport",
    "odradek.net.tls_context",
    "odradek.wire.proxy_header",
    # SASL and tokens
    "odradek.broker.dispatch.authentication_gate",
    "odradek.security.oauth.bearer_message",
    "odradek.security.oauth.bearer_server",
    "odradek.security.oauth.key_set",
    "odradek.security.oauth.signed_token",
    "odradek.security.oauth.token_claims",
    "odradek.security.oauth.unsecured_token",
    "odradek.security.plain_server",
    "odradek.security.sasl_authentication",
    "odradek.security.sasl_authenticator",
    "odradek.security.scram_server",
    "odradek.net.jwks_fetch",
    "odradek.net.sasl_listener",
    # ACLs
    "odradek.broker.acls",
    "odradek.metadata.acl_store",
    "odradek.security.acl_index",
    "odradek.security.standard_authorizer",
)

MOST_MODULES = {"serve": 860, "gateway": 915, "a command": 255, "a host of a test": 855}
"""All modules of the process, those of Python too. Each takes half a millisecond of CPU."""
PROGRAMS = {
    "gateway": "import odradek.cli.main, odradek.cli.gateway, odradek.programs.gateway",
    "a command": "import odradek.cli.main, odradek.cli.topics",
    "a host of a test": "import odradek.testing; odradek.testing.host().__enter__()",
}
SETTINGS = ("--set", "listeners=PLAINTEXT://127.0.0.1:0", "--set")


@pytest.mark.ci
def test_a_start_without_security_imports_nothing_of_it(tmp_path: Path) -> None:
    serve = ServeProcess(*SETTINGS, f"data.dir={tmp_path}", env={"PYTHONPROFILEIMPORTTIME": "1"})
    with WireClient(("127.0.0.1", int(serve.bootstrap.rpartition(":")[2]))) as client:
        client.introduce()
        serve.terminate()

    imported = {line.rpartition("|")[2].strip() for line in serve.errors if line.startswith("import time:")}
    assert "odradek.programs.host" in imported
    assert imported.isdisjoint(NOT_IMPORTED), imported.intersection(NOT_IMPORTED)
    assert len(imported) <= MOST_MODULES["serve"], len(imported)


@pytest.mark.ci
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_imports_what_it_needs(program: str) -> None:
    code = f"import os, sys; {PROGRAMS[program]}; print(len(sys.modules), flush=True); os._exit(0)"

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert int(printed) <= MOST_MODULES[program]


def test_each_of_them_exists() -> None:
    missing = [name for name in NOT_IMPORTED if name.startswith("odradek.") and find_spec(name) is None]

    assert missing == []
