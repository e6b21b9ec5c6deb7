"""Folders and files whose names have characters of URIs, of SQL and of shells."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.endpoints.token_file import TokenError, token_path
from odradek.metadata.store import MetadataStore
from odradek.net.jwks_fetch import BadJwksUrl, jwks_fetcher
from support.spooling import FarSide, hosting, push_all
from support.waiting import wait_until

NAMES = [
    "with blank",
    "n#1",
    "q?mode=memory",
    "per%20cent",
    "quo'te",
    'dq"t',
    "umläut",
    "semi;colon",
    "star*",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_host_keeps_everything_in_its_data_directory(tmp_path: Path, name: str) -> None:
    far_side = FarSide()
    with hosting(tmp_path / name, fake=far_side) as host:
        push_all(host, range(1))
        wait_until(lambda: far_side.taken, "the push")
    with hosting(tmp_path / name, fake=far_side) as host:
        push_all(host, range(1, 2))
        wait_until(lambda: len(far_side.taken) == 2, "the second push")

    assert [path.name for path in tmp_path.iterdir()] == [name]
    MetadataStore(tmp_path / name / "metadata.db", read_only=True).close()


@pytest.mark.parametrize("name", NAMES)
def test_the_file_uri_of_a_path_is_that_path(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(b"{}")

    assert token_path(file.as_uri()) == file
    assert jwks_fetcher(file.as_uri())() == b"{}"


@pytest.mark.parametrize("name", ["n#1", "q?x", "trailing#"])
def test_a_file_address_that_would_be_cut_off_is_refused(tmp_path: Path, name: str) -> None:
    url = f"file://{tmp_path}/{name}"

    with pytest.raises(TokenError, match="expected # as %23"):
        token_path(url)
    with pytest.raises(BadJwksUrl, match="expected # as %23"):
        jwks_fetcher(url)
