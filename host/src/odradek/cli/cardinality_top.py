"""``odradek cardinality top``: the origins of the series that Prometheus gets.

A listener of odradek-prometheus answers it, from counts.
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from ssl import SSLContext
from typing import Any, Final

import click

from odradek.cli.columns import Column, Table
from odradek.cli.errors import CommandFailed
from odradek.cli.listing import json_option, show
from odradek.endpoints import BadCertificate, TlsFiles
from odradek.endpoints.http_exchange import NoAnswer, exchange

TIMEOUT_S: Final = 10.0
MAX_BYTES: Final = 4 << 20
MAX_ROWS: Final = 1_000
BY: Final = ("app", "principal", "metric", "label", "software")
COLUMNS: Final[Mapping[str, str]] = {
    "series": "SERIES",
    "share": "SHARE",
    "new_per_hour": "NEW-PER-HOUR",
    "clients": "CLIENTS",
    "label": "LABEL",
    "values": "VALUES",
    "example": "EXAMPLE",
}
"""The headings of the columns, by the names of their values in JSON."""
OF_CLIENTS: Final = ("label", "values")
OF_STREAMS: Final = {"metric": ("clients",), "label": ("clients", "label")}
"""Columns that a table lacks, by ``--by``; the other tables lack those of `OF_CLIENTS`."""
FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
EPILOG = """\b
Example:
  odradek cardinality top --by metric -n 10
"""


@click.command("top", epilog=EPILOG)
@click.option(
    "--url",
    metavar="URL",
    default="http://127.0.0.1:9404",
    help="The listener of [plugins.prometheus]; http://127.0.0.1:9404 by default.",
)
@click.option("--by", type=click.Choice(BY), default=BY[0], help="Count the series of each of these.")
@click.option(
    "-n", "--number", "most", metavar="N", type=click.IntRange(1, MAX_ROWS), default=20, help="Rows to print."
)
@click.option("--token-file", metavar="FILE", type=FILE, help="A file with a token of the listener.")
@click.option("--ca-file", metavar="FILE", type=FILE, help="PEM file with the CA of the listener.")
@json_option
def top(url: str, by: str, most: int, token_file: Path | None, ca_file: Path | None, as_json: bool) -> None:
    """Show which apps, principals, metrics, labels or software have most series."""
    found = asked(url, by, most, token_file, ca_file)
    show(as_json, [found], lines(found, by))


def asked(url: str, by: str, most: int, token_file: Path | None, ca_file: Path | None) -> dict[str, Any]:
    """The answer of the listener.

    Raises:
        CommandFailed: There is none.
    """
    headers = {}
    if token_file is not None:
        headers["Authorization"] = f"Bearer {next(iter(token_file.read_text(encoding='utf-8').split()), '')}"
    tls = checked(url, ca_file)
    place = f"{url.rstrip('/')}/cardinality?{urllib.parse.urlencode({'by': by, 'n': most})}"
    try:
        answer = exchange(place, timeout_s=TIMEOUT_S, max_bytes=MAX_BYTES, headers=headers, tls=tls)
    except NoAnswer as error:
        raise CommandFailed(
            f"{url} does not answer: {error}. The listener of [plugins.prometheus] counts the series; "
            "--url tells where it is"
        ) from None
    if answer.status == HTTPStatus.UNAUTHORIZED:
        raise CommandFailed(f"{url} wants a token: --token-file has one")
    try:
        found = json.loads(answer.body)
        if answer.status != HTTPStatus.OK or "top" not in found:
            raise ValueError(f"status {answer.status}")
    except (ValueError, TypeError) as error:
        raise CommandFailed(f"{url} is no listener of [plugins.prometheus]: {error}") from None
    return dict(found)


def checked(url: str, ca_file: Path | None) -> SSLContext | None:
    """Check the address of a listener; return the context of its TLS, None without.

    Raises:
        CommandFailed: This is no address of a listener, or the file has no certificates.
    """
    parts = urllib.parse.urlsplit(url)
    try:
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if parts.scheme not in ("http", "https") or not host or parts.path not in ("", "/"):
        raise CommandFailed(f"--url: expected http://HOST:PORT or https://HOST:PORT, found {url!r}")
    if parts.scheme == "http":
        return None
    try:
        return TlsFiles(ca=ca_file).context()
    except BadCertificate as error:
        raise CommandFailed(f"--ca-file: expected certificates in PEM, found {error}") from None


def lines(found: Mapping[str, Any], by: str) -> Iterator[str]:
    """The answer for people."""
    yield f"{found['series']} series of {found['clients']} clients"
    for each in found["budgets"]:
        scope = f" {each['scope']}" if each["scope"] else ""
        yield (
            f"budget {each['budget']}{scope}: {each['series']} of {each['limit']} series, {each['ratio']:.0%}"
        )
    for outcome, text in (("folded", "part of others"), ("refused", "left out")):
        for budget, streams in sorted(found[outcome].items()):
            yield f"over budget {budget}: {streams} streams {text}"
    yield ""
    hidden = OF_STREAMS.get(by, OF_CLIENTS)
    fields = [name for name in COLUMNS if name not in hidden]
    names = [by, "principal"] if by == "app" else [by]
    columns: list[Column] = [(heading.upper(), 0) for heading in names]
    columns += [(COLUMNS[name], 0) for name in fields]
    rows = [
        [*([each["name"], each["principal"]] if by == "app" else [each["name"]]), *cells(each, fields)]
        for each in found["top"]
    ]
    yield from Table(columns, rows).lines()


def cells(each: Mapping[str, Any], fields: list[str]) -> list[object]:
    return [f"{each[name]:.1%}" if name == "share" else each[name] or None for name in fields]
