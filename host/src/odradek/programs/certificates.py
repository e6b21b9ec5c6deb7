"""The certificates of all TLS listeners: loaded at the start, and again when files or settings change.

Files are checked at an interval; SIGHUP and IncrementalAlterConfigs load them at once. New connections use
the new certificates, and no open connection is closed. Files that cannot be used change nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from odradek.meters.metrics_settings import METRICS_LISTENER
from odradek.net.listener_settings import SSL, WITH_TLS
from odradek.plugin.config import ConfigError
from odradek.programs.config import HostConfig
from odradek.security.tls_settings import NONE, TlsSettings
from odradek.settings.listener_values import KEY, declaration_of, listener_key
from odradek.settings.reading import by_key
from odradek.settings.setting import Scope
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Offload

if TYPE_CHECKING:
    from odradek.net.listener_tls import ListenerTls

log = logging.getLogger(__name__)

SETTINGS = by_key(TlsSettings)
DECLARATIONS = {key: each for key, (_, each) in SETTINGS.items()}
AT_RUN_TIME = {key: name for key, (name, each) in SETTINGS.items() if each.scope is Scope.LISTENER}
"""The fields that change at run time, by key."""
CLIENT_AUTH = "ssl.client.auth"


class Certificates:
    """The certificates of one host.

    Args:
        config: The configuration at the start.
        clock: The time.
        timer: Runs the checks of the files.
        offload: Runs work on a thread.

    Raises:
        ConfigError: The certificates of a listener are not usable.
    """

    def __init__(self, config: HostConfig, clock: Clock, timer: Timer, offload: Offload) -> None:
        self.config = config
        self.clock = clock
        self.timer = timer
        self.offload = offload
        self.texts: Mapping[str, str] = {}
        """Values that were set at run time, by full key."""
        names = [each.name for each in config.listeners if each.security_protocol in WITH_TLS]
        if config.metrics_listener is not None and config.metrics_listener.scheme == "https":
            names.append(METRICS_LISTENER)
        self.listeners: dict[str, ListenerTls] = {}
        if names:
            from odradek.net.listener_tls import ListenerTls

            self.listeners = {name: ListenerTls(name, self.settings(name, {})) for name in names}

    def settings(self, listener: str, texts: Mapping[str, str]) -> TlsSettings:
        """Return the settings of a listener, with values that are set at run time.

        Raises:
            ConfigError: A value is wrong, or the values contradict each other.
        """
        config = self.config
        values: dict[str, Any] = dict(config.listener_values)
        for key, text in texts.items():
            declaration = declaration_of(key, DECLARATIONS)
            if declaration is not None:
                values[key] = declaration.parse(text)
        found = replace(config, listener_values=values).of_listener(config.tls, listener)
        protocols = {each.name: each.security_protocol for each in config.listeners}
        own_key = listener_key(listener, CLIENT_AUTH)
        if protocols.get(listener, SSL) != SSL and own_key not in config.listener_values:
            # as in Kafka: clients of SASL do not need a certificate unless this listener says so
            found = replace(found, client_auth=NONE)
        return found

    def start(self) -> None:
        """Begin to check the files."""
        interval_ms = self.config.tls.reload_interval_ms
        if self.listeners and interval_ms:
            self.timer.schedule(self.clock.monotonic_ms() + interval_ms, self.check_files)

    def check_files(self) -> None:
        """Look for changed files on a thread, and load them."""
        self.offload(self.changed_files, self.take_changed)

    def changed_files(self) -> list[tuple[ListenerTls, Any, Any]]:
        """Load the files that have changed."""
        found = []
        for tls in self.listeners.values():
            settings = tls.loaded.settings
            files = tls.stamps_of(settings)
            if files != tls.stamps:
                found.append((tls, tls.attempt(settings), files))
        return found

    def take_changed(self, found: list[tuple[ListenerTls, Any, Any]]) -> None:
        """Use what a check has loaded, and plan the next one."""
        for tls, attempt, files in found:
            tls.take(attempt, files)
        self.start()

    def reload(self, config: HostConfig) -> None:
        """Load all files again, under the names that a new configuration has.

        Only the keys that can change at run time are taken from it.
        """
        fields = AT_RUN_TIME.values()
        self.config = replace(
            self.config,
            tls=replace(self.config.tls, **{name: getattr(config.tls, name) for name in fields}),
            listener_values={
                key: value
                for values, dynamic in ((self.config.listener_values, False), (config.listener_values, True))
                for key, value in values.items()
                if (base(key) in AT_RUN_TIME) is dynamic
            },
        )
        self.load_all()

    def load_all(self) -> None:
        """Load the certificates that have changed; what cannot be loaded stays as it is."""
        for name in self.listeners:
            self.load_again(name)

    def load_again(self, name: str) -> None:
        """Load the certificates of a listener if its settings or files have changed."""
        tls = self.listeners[name]
        try:
            settings = self.settings(name, self.texts)
        except ConfigError as error:
            tls.take(error, tls.stamps)
            return
        files = tls.stamps_of(settings)
        if settings != tls.loaded.settings or files != tls.stamps or tls.is_stale:
            tls.take(tls.attempt(settings), files)

    def check(self, texts: Mapping[str, str]) -> None:
        """Check that values could be set at run time: the certificates of each listener must load.

        Raises:
            ConfigError: They could not.
        """
        for name in self.affected(texts):
            self.listeners[name].replacement(self.settings(name, texts))

    def update(self, texts: Mapping[str, str]) -> None:
        """Replace all values that are set at run time."""
        affected = self.affected(texts)
        self.texts = dict(texts)
        for name in affected:
            self.load_again(name)

    def affected(self, texts: Mapping[str, str]) -> list[str]:
        """Return the listeners with a value that is set, or was set before."""
        keys = {**self.texts, **texts}
        named = {match["listener"] for key in keys if (match := KEY.fullmatch(key)) is not None}
        return [name for name in self.listeners if name.lower() in named]


def base(key: str) -> str:
    """Return a key without the name of a listener."""
    match = KEY.fullmatch(key)
    return key if match is None else match["base"]
