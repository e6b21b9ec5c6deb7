from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from support.console_site import OPERATOR, VIEWER


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens.toml"
    digest = hashlib.sha256(OPERATOR.encode()).hexdigest()
    file.write_text(
        f'[[token]]\nname = "ann"\nrole = "viewer"\ntoken = "{VIEWER}"\n'
        f'[[token]]\nname = "oli"\nrole = "operator"\nsha256 = "{digest}"\n'
    )
    return file
