"""Mistakes of authors, found when plugins are loaded and their hooks are called: one line names the plugin,
the file and the line, and what to do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.hosting.active_plugin import activate, survey
from odradek.hosting.offered_objects import register
from odradek.hosting.plugin_manager import load_plugins
from odradek.plugin import ConfigError
from odradek.telemetry.enrichers import Enrichers
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin
from odradek.testing.clock import MockClock

Install = Callable[..., Path]
HEAD = "from odradek.plugin import hookimpl\n"
ENRICHER = """
class Team:
    def labels(self, client_instance_id, context):
        return {}
"""


def problem(name: str = "mine", table: dict[str, object] | None = None) -> str:
    """What stops the start of a host with this plugin in its configuration."""
    with pytest.raises(ConfigError) as caught:
        activate(load_plugins(), {name: table or {}})
    return str(caught.value)


HOOK = "def odradek_enricher(config):\n    return Team()\n"
UNMARKED = ENRICHER + HOOK


@pytest.mark.parametrize(
    ("source", "told"),
    [
        pytest.param(
            UNMARKED,
            "odradek_enricher is no hook without @hookimpl ({file}:5); write it above the function, "
            "from odradek.plugin import hookimpl",
            id="no hookimpl",
        ),
        pytest.param(
            "import pluggy\nhookimpl = pluggy.HookimplMarker('other')\n@hookimpl\n" + HOOK,
            "odradek_enricher is no hook without @hookimpl ({file}:3); write it above the function, "
            "from odradek.plugin import hookimpl",
            id="the marker of another project",
        ),
        pytest.param(
            HEAD + "@hookimpl\nasync def odradek_enricher(config):\n    return None\n",
            "odradek_enricher is an async function ({file}:2), and the host does not await it; "
            "expected def odradek_enricher(config)",
            id="async",
        ),
        pytest.param(
            HEAD + "@hookimpl\ndef odradek_enricher(config):\n    yield None\n",
            "odradek_enricher is a generator ({file}:2); return one object instead of yield",
            id="generator",
        ),
        pytest.param(
            HEAD + "@hookimpl\ndef odradek_enricher(settings):\n    return None\n",
            "odradek_enricher takes (settings) ({file}:2); expected def odradek_enricher(config)",
            id="another argument",
        ),
        pytest.param(
            HEAD + "@hookimpl\ndef odradek_enrichr(config):\n    return None\n",
            "there is no hook odradek_enrichr ({file}:2); did you mean odradek_enricher?",
            id="misspelled",
        ),
        pytest.param(
            "def odradek_enrichr(config):\n    return None\n",
            "there is no hook odradek_enrichr ({file}:1); did you mean odradek_enricher?",
            id="misspelled and no hookimpl",
        ),
        pytest.param(
            ENRICHER,
            "it implements no hook ({file}); known hooks: odradek_authorizer, odradek_client_telemetry, "
            "odradek_companion, odradek_enricher, odradek_forwarder, odradek_principal_builder, "
            "odradek_quota_callback, odradek_source, odradek_topic_writer",
            id="no hook",
        ),
        pytest.param(
            "\nimport json\nimport no_such_module_at_all\n",
            f"ModuleNotFoundError: No module named 'no_such_module_at_all' ({{file}}:3); install what the "
            f"plugin needs for {sys.executable}",
            id="missing library",
        ),
        pytest.param(
            "import json\nN = json.loads('[')\n",
            "JSONDecodeError: Expecting value: line 1 column 2 (char 1) ({file}:2)",
            id="import that raises",
        ),
        pytest.param(
            "def x(:\n", "SyntaxError: invalid syntax ({file.name}, line 1) ({file}:1)", id="syntax"
        ),
    ],
)
def test_a_plugin_that_cannot_be_loaded(install: Install, source: str, told: str) -> None:
    file = install("mine", source)

    found = problem()

    assert found == f"plugins.mine: the plugin of odradek-mine cannot be loaded: {told.format(file=file)}"


CLASS = (
    HEAD
    + ENRICHER
    + "class Plugin:\n    @hookimpl\n    def odradek_enricher(self, config):\n        return Team()\n"
)


def test_an_entry_point_that_names_a_function(install: Install) -> None:
    file = install("mine", HEAD + "@hookimpl\n" + HOOK, attribute=":odradek_enricher")

    assert problem().endswith(
        f"its entry point names the function odradek_enricher ({file}:2); name its module"
    )


def test_an_entry_point_of_a_name_that_is_not_there(install: Install) -> None:
    file = install("mine", CLASS, attribute=":plugin")

    assert problem().endswith(
        f"AttributeError: module '{file.stem}' has no attribute 'plugin'; "
        f"its entry point is {file.stem}:plugin"
    )


def test_a_broken_plugin_is_told_in_the_text_of_its_line(
    install: Install, caplog: pytest.LogCaptureFixture
) -> None:
    file = install("mine", "\nimport no_such_module_at_all\n")

    load_plugins()

    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("plugin mine cannot be loaded: ModuleNotFoundError: No module named")
    assert f"({file}:2)" in line


def test_two_distributions_with_one_name_stop_the_start(install: Install) -> None:
    for distribution in ("a-paint", "b-paint"):
        install("mine", HEAD + "@hookimpl\n" + HOOK, distribution)
    told = "plugins.mine: a-paint and b-paint both install a plugin of this name; uninstall one of them"

    with pytest.raises(ConfigError) as caught:
        activate(load_plugins(), {})

    assert str(caught.value) == told
    (listed,) = [plugin for plugin in survey(load_plugins()) if plugin.name == "mine"]
    assert f"plugins.mine: {listed.installed.problem}" == told
    activate(load_plugins(), {"mine": {"enabled": False}})


def test_a_plugin_with_the_name_of_a_built_in_one_stops_the_start(install: Install) -> None:
    install("stdout", HEAD + "@hookimpl\n" + HOOK)

    with pytest.raises(ConfigError, match="odradek and odradek-stdout both install"):
        activate(load_plugins(), {})


def hook(body: str) -> str:
    """A plugin whose hook has this body, from line 7 on."""
    return HEAD + ENRICHER.lstrip() + "@hookimpl\ndef odradek_enricher(config):\n    " + body


@pytest.mark.parametrize(
    ("body", "told"),
    [
        pytest.param(
            "return config.text('url').split(':')",
            "odradek_enricher raised AttributeError: 'NoneType' object has no attribute 'split' {place}; "
            "the table has no url: give it a default, or raise ConfigError",
            id="a key that is missing",
        ),
        pytest.param(
            "return config.values['url']",
            "odradek_enricher raised KeyError: 'url' {place}; raise ConfigError for a wrong table",
            id="the table as a mapping",
        ),
        pytest.param(
            "import json; json.loads('[')",
            "odradek_enricher raised JSONDecodeError: Expecting value: line 1 column 2 (char 1) "
            "{place}; raise ConfigError for a wrong table",
            id="in a library",
        ),
        pytest.param(
            "return Team",
            "odradek_enricher returned the class Team; return an instance of it, Team(...) ({file}:5)",
            id="a class",
        ),
        pytest.param(
            "return 'Team'",
            "odradek_enricher returned str, expected Enricher: it lacks labels ({file}:5)",
            id="a name",
        ),
    ],
)
def test_a_hook_that_fails(install: Install, body: str, told: str) -> None:
    file = install("mine", hook(body))

    place = f"({file}:7 in odradek_enricher)"
    assert problem() == f"plugins.mine: {told.format(place=place, file=file)}"


def test_a_receiver_where_a_provider_is_expected(install: Install) -> None:
    receiver = "class Receiver:\n    def export_metrics(self, context, payload): pass\n"
    file = install(
        "mine", HEAD + receiver + "@hookimpl\ndef odradek_client_telemetry(config): return Receiver()\n"
    )

    assert problem() == (
        "plugins.mine: odradek_client_telemetry returned Receiver, expected ClientTelemetry or "
        f"ClientTelemetryExporterProvider: it lacks client_receiver or client_telemetry_exporter ({file}:4)"
    )


def test_a_provider_that_raises(install: Install) -> None:
    provider = "class Provider:\n    def client_receiver(self):\n        return self.receiver\n"
    source = HEAD + provider + "@hookimpl\ndef odradek_client_telemetry(config): return Provider()\n"
    file = install("mine", source)
    (plugin,) = [each for each in activate(load_plugins(), {}) if each.name == "mine"]
    clock = MockClock()
    receivers = ClientMetricsReceiverPlugin(clock)

    with pytest.raises(ConfigError) as caught:
        register([plugin], receivers, Enrichers(clock, clock.timer))

    assert str(caught.value) == (
        "plugins.mine: Provider raised AttributeError: 'Provider' object has no attribute 'receiver' "
        f"({file}:4 in client_receiver); return None to stay out"
    )
