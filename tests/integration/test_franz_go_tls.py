"""franz-go on SSL and SASL_SSL listeners, and refused with the reason."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from integration.test_tls import PASSWORD, USER, TlsHost, tls_host

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]


@pytest.fixture(scope="module")
def host(franz_go: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsHost]:
    """Not started without Go."""
    assert franz_go
    with tls_host(tmp_path_factory.mktemp("franz-go")) as started:
        yield started


def ran(program: str, host: TlsHost, name: str, **options: str) -> subprocess.CompletedProcess[str]:
    """Run the client on a listener."""
    given = {"ca": host.files.ca} | options
    command = [program, *(f"-{key}={value}" for key, value in given.items())]
    return subprocess.run(
        [*command, host.address(name), f"franz-{name}", "200", "a-gopher"],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


@pytest.mark.parametrize("name", ["SSL", "SSL_MUTUAL", "SASL_SSL"])
def test_franz_go_produces_and_reads_with_a_group(host: TlsHost, franz_go: str, name: str) -> None:
    options = {
        "SSL": {},
        "SSL_MUTUAL": {"certificate": host.files.client},
        "SASL_SSL": {"user": USER, "password": PASSWORD},
    }[name]

    done = ran(franz_go, host, name, **options)

    assert done.stdout.splitlines() == ["produced=1000", "read=1000"], done.stderr


def test_franz_go_reports_an_unknown_authority(host: TlsHost, franz_go: str) -> None:
    done = ran(franz_go, host, "SSL", ca=host.files.other_ca)

    assert done.returncode == 1
    assert "x509: certificate signed by unknown authority" in done.stderr


def test_franz_go_reports_a_name_that_the_certificate_lacks(host: TlsHost, franz_go: str) -> None:
    done = ran(franz_go, host, "SSL_ELSEWHERE")

    assert done.returncode == 1
    assert "x509: certificate is valid for other.example, not localhost" in done.stderr


def test_franz_go_reports_a_missing_certificate(host: TlsHost, franz_go: str) -> None:
    done = ran(franz_go, host, "SSL_MUTUAL")

    assert done.returncode == 1
    assert "tls: certificate required" in done.stderr


def test_franz_go_reports_a_wrong_password(host: TlsHost, franz_go: str) -> None:
    done = ran(franz_go, host, "SASL_SSL", user=USER, password="wrong")

    assert done.returncode == 1
    assert "SASL_AUTHENTICATION_FAILED" in done.stderr
