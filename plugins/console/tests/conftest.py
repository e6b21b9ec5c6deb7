from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.console_site import OPERATOR, VIEWER, Site
from support.oidc_site import ANN, oidc_site
from support.openid_provider import SECRET, OpenIdProvider, providing


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens.toml"
    digest = hashlib.sha256(OPERATOR.encode()).hexdigest()
    file.write_text(
        f'[[token]]\nname = "ann"\nrole = "viewer"\ntoken = "{VIEWER}"\n'
        f'[[token]]\nname = "oli"\nrole = "operator"\nsha256 = "{digest}"\n'
    )
    return file


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with providing() as found:
        found.claims = dict(ANN)
        yield found


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    file.chmod(0o600)
    return file


@pytest.fixture
def place(provider: OpenIdProvider, secret: Path, tokens: Path) -> Site:
    return oidc_site(provider, secret, tokens=tokens)
