"""Files that another program may replace: what is read, and what is refused without waiting.

A pipe without a writer is the test of waiting: who opens one as a file waits until the test's time is over.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from odradek.bounds.small_file import read_small_file
from odradek.cli.program_run import Start, read_again
from odradek.client.errors import ConnectFailed
from odradek.client.sasl import token_in
from odradek.endpoints import BadCertificate, ListenerTls, SecretKind, TlsFiles, read_tokens
from odradek.endpoints.credentials import secret_headers
from odradek.endpoints.token_file import TokenError, TokenFile
from odradek.net.jwks_fetch import jwks_fetcher
from odradek.plugin.config import ConfigError
from odradek.programs.program_keys import Program
from odradek.security.key_store import file_content
from odradek.settings.references import content
from support.no_files import NO_FILES, no_file


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")

    assert read_small_file(path, 5) == b"12345"
    with pytest.raises(OSError, match="larger than 4 bytes"):
        read_small_file(path, 4)


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")

    assert read_small_file(tmp_path / "link") == b"text"


@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_no_file_is_refused_by_name(tmp_path: Path, kind: str) -> None:
    path = no_file(kind, tmp_path / "there")

    with pytest.raises(OSError, match=f"it is {kind}, expected a file"):
        read_small_file(path)


def test_a_missing_file_is_the_usual_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_small_file(tmp_path / "missing")


def start_from(path: Path) -> Start:
    return Start(path, (), (), False, "info", Program.SERVE)


READERS: Final[dict[str, Callable[[Path], object]]] = {
    "a token of a client": lambda path: token_in(path)(),
    "a token for librdkafka": lambda path: TokenFile(path)(),
    "a header with a secret": lambda path: secret_headers(SecretKind.BEARER, path),
    "the tokens of senders": read_tokens,
    "the certificate of a listener": lambda path: ListenerTls(certificate=path).context(),
    "the CA of a destination": lambda path: TlsFiles(ca=path).context(),
    "the store of a key": lambda path: file_content(str(path), "ssl.keystore.location", "ssl.keystore.type"),
    "the keys of an issuer": lambda path: jwks_fetcher(f"file://{path}")(),
    "the configuration at a reload": lambda path: read_again(start_from(path), path),
    "a secret of the configuration": lambda path: content("key", path),
}
"""What the programs read while they run."""


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("what", READERS)
def test_no_reader_waits_for_what_is_no_file(tmp_path: Path, what: str, kind: str) -> None:
    path = no_file(kind, tmp_path / "there")

    with pytest.raises(
        (OSError, BadCertificate, ConfigError, ConnectFailed, TokenError),
        match=f"it is {kind}, expected a file",
    ):
        READERS[what](path)


@pytest.mark.parametrize(
    "read", [lambda name: content("password", Path(name)), lambda name: file_content(name, "k", "t")]
)
def test_the_home_of_nobody_is_a_file_that_cannot_be_read(read: Callable[[str], object]) -> None:
    with pytest.raises(ConfigError, match="there is no such user"):
        read("~nobody-of-this-name/secret")
