"""The token of OAUTHBEARER in a file, as the callback of librdkafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.endpoints import TokenError, token_path, with_token_file
from odradek.endpoints.token_file import TOKEN_URL, TokenFile
from support.tokens import claims_of, signed, unsecured

NOW_S = 1_760_000_000.0


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///run/token", "/run/token"),
        ("file://localhost/run/token", "/run/token"),
        ("file:///run/a%20token", "/run/a token"),
        ("https://issuer.example.com/token", None),
        ("", None),
    ],
)
def test_the_path_of_an_address(url: str, path: str | None) -> None:
    found = token_path(url)

    assert found == (None if path is None else Path(path))


@pytest.mark.parametrize("url", ["file:token", "file://elsewhere/run/token", "file://"])
def test_an_address_that_is_no_file_of_this_machine_is_refused(url: str) -> None:
    with pytest.raises(TokenError, match="expected the file of a token as file:///PATH"):
        token_path(url)


@pytest.mark.parametrize("sign", [signed, unsecured])
def test_the_file_is_read_at_each_call(tmp_path: Path, sign: object) -> None:
    assert callable(sign)
    file = tmp_path / "token"
    old, new = sign(claims_of("ann", NOW_S, 60)), sign(claims_of("ann", NOW_S + 50, 60))
    file.write_text(old + "\n")
    options = with_token_file({TOKEN_URL: f"file://{file}", "client.id": "a"}, NOW_S)

    first = options["oauth_cb"]("")
    file.write_text(new)
    second = options["oauth_cb"]("")

    assert options == {"client.id": "a", "oauth_cb": TokenFile(file)}
    assert (first, second) == ((old, NOW_S + 60), (new, NOW_S + 110))


def test_options_without_a_file_stay_as_they_are() -> None:
    options = {TOKEN_URL: "https://issuer.example.com/token", "client.id": "a"}

    found = with_token_file(options, NOW_S)

    assert found == options


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "cannot be read"),
        ("", "no signed token"),
        ("opaque", "no signed token"),
        ("a.!!!.c", "no signed token"),
        (signed(claims_of("ann", NOW_S, exp=None)), "no signed token"),
        (signed(claims_of("ann", NOW_S, exp="soon")), "no signed token"),
        ("\u00fc", "cannot be read"),
        (signed(claims_of("ann", NOW_S - 60, 60)), "has expired"),
    ],
    ids=["no file", "empty", "opaque", "no JSON", "no expiry", "a bad expiry", "not UTF-8", "expired"],
)
def test_a_file_without_a_token_that_can_be_used_is_named(
    tmp_path: Path, text: str | None, problem: str
) -> None:
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text, encoding="utf-8")

    with pytest.raises(TokenError, match=problem) as raised:
        with_token_file({TOKEN_URL: f"file://{file}"}, NOW_S)

    assert str(file) in str(raised.value)
    assert text is None or len(text) < 5 or text not in str(raised.value)
