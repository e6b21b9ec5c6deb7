"""``odradek serve --ephemeral``: a host for the tests of an application in any language."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import signal
import stat
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from importlib.metadata import entry_points
from queue import SimpleQueue

from odradek.broker.broker_settings import Endpoint
from odradek.hosting.plugin_manager import GROUP
from odradek.plugin.config import ConfigError
from odradek.process.hangup import held_hangup
from odradek.programs.config import HostConfig, parse
from odradek.testing.control.control_server import OPTION, TOKEN_VARIABLE, ControlServer
from odradek.testing.control.operations import Operations
from odradek.testing.host_context import FOR_TESTS, HostContext, memory_folder, temporary_folder
from odradek.testing.running_host import RunningHost
from odradek.testing.virtual_clock import VirtualClock
from odradek.waiting.clock import SystemClock

log = logging.getLogger("odradek")

STDIN = 0
CONTROL = "127.0.0.1:0"
"""The control port of a host that is not told another one."""
ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^:/\[\]]+):(\d{1,5})")
DIRECTORIES = ("data.dir", "log.dirs")


class EphemeralHost(HostContext):
    """The host of the test fixture, with the configuration of ``serve``.

    Args:
        values: The values of the file and of ``--set``, by dotted key.
        plugins: Those of ``--plugin``.
        clock: Its clock; None for the machine's.
        brokers: How many brokers clients see.
    """

    def __init__(
        self, values: Mapping[str, object], plugins: frozenset[str], clock: VirtualClock | None, brokers: int
    ) -> None:
        self.values, self.requested = values, plugins
        super().__init__({}, clock, None, brokers=brokers)

    def host_config(self, opened: ExitStack) -> HostConfig:
        """The configuration, with temporary directories in place of its own."""
        kept = {key: value for key, value in self.values.items() if key not in DIRECTORIES}
        temporary = {
            "data.dir": str(temporary_folder(opened, memory_folder())),
            "log.dirs": str(temporary_folder(opened, None)),  # may grow too large for memory
        }
        return parse(self.with_brokers({**FOR_TESTS, **kept, **temporary}), self.requested)


def tell_inactive(plugins: Collection[str], requested: Mapping[str, object]) -> None:
    """Log which plugins are installed and not active: tests should not depend on them.

    Args:
        plugins: The names of those that are active.
        requested: Those of ``--plugin``, each with its file; None if it is an installed one.
    """
    installed = {each.name for each in entry_points(group=GROUP)}
    for name in sorted(installed & requested.keys()):
        if requested[name] is not None:
            told = "plugin %s is that of the file %s; the installed one of this name stays inactive"
            log.info(told, name, requested[name])
    inactive = sorted(installed - set(plugins))
    if inactive:
        told = "--ephemeral activates plugins that --plugin or a table names; the others stay inactive: %s"
        log.info(told, ", ".join(inactive))


def clock_from_now() -> VirtualClock:
    """A virtual clock that begins now, so that the timestamps of real clients are in range."""
    clock = VirtualClock()
    clock.mock.jump(SystemClock().now_ms() - clock.now_ms())
    return clock


def control_address(text: str) -> Endpoint:
    """The address of ``--control``.

    Raises:
        ConfigError: The text is not an address.
    """
    match = ADDRESS.fullmatch(text)
    if match is None or int(match[2]) > 65_535:
        raise ConfigError(OPTION, f"expected HOST:PORT, found {text!r}")
    return Endpoint(match[1].strip("[]"), int(match[2]))


def control_token(control: str) -> str | None:
    """The token of the environment; None if there is none and the address of ``--control`` needs none.

    Raises:
        ConfigError: Other machines can reach the address, so it needs one.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    if not token and not is_loopback(control_address(control).host):
        raise ConfigError(
            OPTION,
            f"{control} can be reached from other machines: set the environment variable {TOKEN_VARIABLE} "
            "to a secret that each request must have",
        )
    return token or None


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def run_ephemeral(host: EphemeralHost, control: str, ready: Callable[[RunningHost, str], object]) -> None:
    """Run a host with a control port until a signal, or until the process that started it is gone.

    Args:
        host: The host to start.
        control: The ``HOST:PORT`` of the control port; port 0 picks a free one.
        ready: Called with the running host and the control port's URL.

    Raises:
        ConfigError: The configuration is not usable, or the address of the control port is not.
    """
    address, token = control_address(control), control_token(control)
    ended: SimpleQueue[str] = SimpleQueue()  # its put may be called by a signal handler
    held = held_hangup()

    def end(number: int, _frame: object) -> None:
        """Stop; a second signal interrupts what holds that up, such as the hook of a plugin."""
        signal.signal(number, signal.default_int_handler)
        ended.put(signal.Signals(number).name)

    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), end)
    if held is not None and held.came:
        ended.put("SIGHUP")
    with host as running:
        server = ControlServer(Operations(running), address, token)
        try:
            ready(running, server.url)
            if is_pipe(STDIN):
                threading.Thread(target=until_closed, args=(STDIN, ended), daemon=True).start()
            log.info("stopping", extra={"why": ended.get()})
        finally:
            server.close()
            running.forget_faults()  # `check` is an operation: the exit status would reach no test


def is_pipe(descriptor: int) -> bool:
    """Whether the descriptor was made by the parent process: then it closes when that process ends."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def until_closed(descriptor: int, ended: SimpleQueue[str]) -> None:
    """Read until the other end closes."""
    try:
        while os.read(descriptor, 4096):
            pass
    finally:
        ended.put("end of standard input")
