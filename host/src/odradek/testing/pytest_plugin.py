"""The fixtures of the test kit: hosts for one test, and hosts for a session.

This is an entry point in pytest's group ``pytest11``.

pytest loads this module in every session, so it imports nothing of the host before a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from odradek import testing

if TYPE_CHECKING:
    from odradek.testing.running_host import RunningHost

HOSTS = pytest.StashKey["list[RunningHost]"]()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Exempt the host from pytest's assertion rewriting.

    pytest rewrites the assertions in all packages of a distribution that has a plugin. The host would take
    twice as long to start and would not run the code of production. pytest has no public way to prevent that.
    If this private one disappears, the first start becomes slower, and one of our tests fails.
    """
    hook = getattr(early_config.pluginmanager, "rewrite_hook", None)
    getattr(hook, "_must_rewrite", set()).discard("odradek")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Drop what earlier tests sent to the hosts of the session, so that no wait finds it."""
    for host in running_hosts(item.config):
        host.forget()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose faults hit no request. Faults never reach the next test."""
    try:
        result = yield
    except BaseException:
        for host in running_hosts(item.config):
            host.forget_faults()
        raise
    problems = []
    for host in running_hosts(item.config):
        try:
            host.check()
        except (AssertionError, RuntimeError) as error:
            problems.append(f"{type(error).__name__}: {error}")
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)  # the message says all, the stack would hide it
    return result


def running_hosts(config: pytest.Config) -> list[RunningHost]:
    """The hosts that the fixtures have started and not stopped."""
    return config.stash.setdefault(HOSTS, [])


def starter(config: pytest.Config) -> Iterator[Callable[..., RunningHost]]:
    """Yield a function that starts hosts; then stop them."""
    hosts = running_hosts(config)
    with ExitStack() as opened:

        def start(**arguments: Any) -> RunningHost:
            host = opened.enter_context(testing.host(**arguments))
            hosts.append(host)
            opened.callback(hosts.remove, host)
            return host

        yield start


@pytest.fixture
def odradek_hosts(pytestconfig: pytest.Config) -> Iterator[Callable[..., RunningHost]]:
    """Return a function that starts hosts, with the arguments of `odradek.testing.host`.

    All hosts are stopped after the test.
    """
    yield from starter(pytestconfig)


@pytest.fixture
def odradek_host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    """An empty host on a free port of 127.0.0.1."""
    return odradek_hosts()


@pytest.fixture(scope="session")
def odradek_session_hosts(pytestconfig: pytest.Config) -> Iterator[Callable[..., RunningHost]]:
    """Return a function that starts hosts for the whole session, like `odradek_hosts`."""
    yield from starter(pytestconfig)


@pytest.fixture(scope="session")
def odradek_session_host(odradek_session_hosts: Callable[..., RunningHost]) -> RunningHost:
    """A host for all tests of the session.

    Its topics and settings stay from test to test. Faults end with their test, and recorded requests and
    pushes are dropped before the next one.
    """
    return odradek_session_hosts()
