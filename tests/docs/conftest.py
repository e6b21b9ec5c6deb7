from __future__ import annotations

import pytest

from support.reader import Reader, install_from_wheels


@pytest.fixture(scope="session")
def installed_from_wheels(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A reader with an environment made as "how to install" says; its tests share a process."""
    reader = Reader(tmp_path_factory.mktemp("reader"))
    install_from_wheels(reader)
    return reader
