"""The fixtures ``odradek_host`` and ``odradek_hosts``: the entry point in pytest's group ``pytest11``.

Loaded in every session, so it imports nothing of the host before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from odradek import testing

if TYPE_CHECKING:
    from odradek.testing.running_host import RunningHost


@pytest.fixture
def odradek_hosts() -> Iterator[Callable[..., RunningHost]]:
    """Starts hosts with the arguments of `odradek.testing.host`; all are stopped after the test."""
    with ExitStack() as running:
        yield lambda **config: running.enter_context(testing.host(**config))


@pytest.fixture
def odradek_host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    """A host on a free port of 127.0.0.1, with nothing in it."""
    return odradek_hosts()
