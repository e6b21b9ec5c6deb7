"""The fixtures ``odradek_host`` and ``odradek_hosts``, an entry point in pytest's group ``pytest11``.

pytest loads this module in every session, so it imports nothing of the host before a fixture is used.
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
    """Exempt the host from pytest's assertion rewriting.

    pytest rewrites the assertions in all packages of a distribution that has a plugin. The host would take
    twice as long to start and would not run the code of production. pytest has no public way to prevent that.
    If this private one disappears, the first start becomes slower, and one of our tests fails.
    """
    hook = getattr(early_config.pluginmanager, "rewrite_hook", None)
    getattr(hook, "_must_rewrite", set()).discard("odradek")


@pytest.fixture
def odradek_hosts() -> Iterator[Callable[..., RunningHost]]:
    """Return a function that starts hosts, with the arguments of `odradek.testing.host`.

    All hosts are stopped after the test.
    """
    with ExitStack() as running:
        yield lambda **config: running.enter_context(testing.host(**config))


@pytest.fixture
def odradek_host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    """An empty host on a free port of 127.0.0.1."""
    return odradek_hosts()
