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


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Let the host be imported as it is.

    pytest rewrites the assertions of all packages of a distribution with a plugin: the host would start at
    half the speed, and not be what it is in production. There is no public way out. Should this one end, the
    first start is slower again, and a test of ours fails.
    """
    hook = getattr(early_config.pluginmanager, "rewrite_hook", None)
    getattr(hook, "_must_rewrite", set()).discard("odradek")


@pytest.fixture
def odradek_hosts() -> Iterator[Callable[..., RunningHost]]:
    """Starts hosts with the arguments of `odradek.testing.host`; all are stopped after the test."""
    with ExitStack() as running:
        yield lambda **config: running.enter_context(testing.host(**config))


@pytest.fixture
def odradek_host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    """A host on a free port of 127.0.0.1, with nothing in it."""
    return odradek_hosts()
