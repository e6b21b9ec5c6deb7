"""No document, example or file to copy has a login that works as it is: a password, a token or a digest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PLACES: Final = ("README.md", "host", "plugins", "examples", "contrib")
WRITTEN: Final = frozenset(
    {"", ".md", ".toml", ".yaml", ".yml", ".json", ".properties", ".service", ".env", ".conf", ".tpl", ".txt"}
    | {".sh", ".py", ".go", ".java", ".js", ".ts", ".rs", ".cs", ".xml", ".gradle", ".html"}
)
PROGRAMS: Final = frozenset({"src", "tests", "build", "node_modules", "target", "__pycache__"})
"""Folders whose files nobody copies."""
SECRET: Final = r"""(?:password|passwd|secret|token|basic\.auth)(?:["']?\])?["']?"""
FORMS: Final = (
    re.compile(rf"""(?i){SECRET}\s*[:=]\s*(?:new\s+\w+\()?(["'])(?P<value>[^"']*)\1"""),
    re.compile(r"""(?i)[\w.-]*(?:PASSWORD|SECRET|TOKEN)=(?P<value>[^\s"'`;,|<>)\]&\\]+)"""),
    re.compile(r"""(?i)\b(?:Bearer|Basic)[ :]+(?P<value>[^\s"'`;,|)]+)"""),
    re.compile(r"""(?i)\becho\s+(?P<value>\S+)\s*>+\s*\S*(?:password|token|secret)"""),
    re.compile(r"""(?i)--(?:password|token|secret)[ =](?P<value>\S+)"""),
    re.compile(r"""\busers?\s*=\s*\{[^}]*?:\s*"(?P<value>[^"]+)\""""),
    re.compile(r"""\.user\("[^"]+",\s*"(?P<value>[^"]+)"\)"""),
    re.compile(r"""\bSaslLogin\([^)]*,\s*"(?P<value>[^"]+)"\)"""),
    re.compile(r"""\bsha256["']?\s*[:=]\s*["'](?P<value>[0-9a-fA-F]{64})["']"""),
)
HOLE: Final = re.compile(r"[<$%{].*|\.{3}|[^a-z]*|\S*/\S*|tokens?\.?")
"""What a reader fills in, a reference, or a sentence: ``PASSWORD``, ``$(cat file)``, "bearer tokens"."""


ALLOWED: Final = {
    "host/docs/howto/test-outages-and-logins.md": {"alice-secret", "carol-secret"},
}
"""Users of a host that a test starts on the loopback interface, and that ends with it."""


def files() -> Iterator[Path]:
    for place in PLACES:
        top = ROOT / place
        for path in [top] if top.is_file() else sorted(top.rglob("*")):
            inside = path.relative_to(top).parts if path != top else ()
            if path.is_file() and path.suffix in WRITTEN and PROGRAMS.isdisjoint(inside):
                yield path


def logins_in(text: str) -> set[str]:
    """The values that a reader could copy, and that would be a login then."""
    found = {match["value"] for form in FORMS for match in form.finditer(text)}
    return {value for value in found if not HOLE.fullmatch(value)}


@pytest.mark.parametrize(
    "text",
    [
        'sasl.jaas.config=x.ScramLoginModule required username="a" password="a-secret";',
        '"sasl.password" = "secret"',
        "echo admin-secret > admin.password",
        f'sha256 = "{32 * "9f"}"',
        'token = "at-least-20-characters"',
        "docker run -e ODRADEK_CONTROL_TOKEN=secret image",
        "curl -H 'Authorization: Bearer secret' http://localhost",
        'users={"alice": "alice-secret"}',
        'const token = "of this test"',
        'SaslLogin("PLAIN", "alice", "secret")',
    ],
)
def test_a_login_is_found(text: str) -> None:
    assert len(logins_in(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        'password="PASSWORD"',
        '"sasl.password" = "${file:/etc/odradek/kafka.password}"',
        "export ODRADEK_CONTROL_TOKEN=$(openssl rand -hex 16)",
        "-H 'Authorization: Bearer TOKEN'",
        '"bearer.token.file" = "/run/secrets/token"',
        "DIGEST OF ANN'S TOKEN",
        "a file with bearer tokens, one a line",
    ],
)
def test_what_has_to_be_filled_in_is_none(text: str) -> None:
    assert logins_in(text) == set()


def test_nothing_to_copy_has_a_login() -> None:
    looked_at, found = 0, {}
    for path in files():
        name = str(path.relative_to(ROOT))
        logins = logins_in(path.read_text(encoding="utf-8")) - ALLOWED.get(name, set())
        looked_at += 1
        if logins:
            found[name] = logins

    assert looked_at > 200
    assert found == {}
