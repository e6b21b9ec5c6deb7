"""Loading and activating plugins, with real entry points in a folder on the import path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.hosting.active_plugin import ActivePlugin, PluginState, activate, quota_callback
from odradek.hosting.offers import CLIENT_TELEMETRY, ENRICHER, QUOTA_CALLBACK
from odradek.hosting.plugin_manager import load_plugins
from odradek.plugin import API_VERSION, ConfigError

Install = Callable[..., Path]

GOOD = """
from odradek.plugin import hookimpl

class Enricher:
    def labels(self, client_instance_id, context):
        return {}

@hookimpl
def odradek_enricher(config):
    if config.text("color") is None:
        return None
    return Enricher()
"""

FORWARDING = """
from odradek.plugin import hookimpl

class Forwarder:
    async def start(self): pass
    async def deliver(self, batch): pass
    async def close(self): pass

@hookimpl
def odradek_forwarder(config):
    config.table("headers")
    return Forwarder()
"""

DECIDING = """
from odradek.plugin import hookimpl

class Callback:
    def quota_metric_tags(self, quota_type, user, client_id): return {}
    def quota_limit(self, quota_type, metric_tags): return None
    def update_quota(self, quota_type, entity, value): pass
    def remove_quota(self, quota_type, entity): pass
    def quota_reset_required(self, quota_type): return False

@hookimpl
def odradek_quota_callback(config):
    return Callback() if config.boolean("decide", default=True) else None
"""


def named(plugins: list[ActivePlugin], name: str) -> ActivePlugin:
    return next(plugin for plugin in plugins if plugin.name == name)


def test_an_installed_plugin_is_found_with_its_distribution_and_hooks(install: Install) -> None:
    install("paint", GOOD)

    plugin = load_plugins().installed["paint"]

    assert (plugin.distribution, plugin.version, plugin.hooks) == (
        "odradek-paint",
        "9.1",
        ("odradek_enricher",),
    )
    assert plugin.problem is None


def test_two_managers_are_independent(install: Install) -> None:
    install("paint", GOOD)
    first = load_plugins()

    second = load_plugins()

    first.unregister(name="paint")
    assert second.has_plugin("paint")


def test_a_plugin_that_cannot_be_imported_does_not_stop_the_start(install: Install) -> None:
    install("paint", GOOD)
    file = install("rotten", "raise RuntimeError('no such library')")

    plugins = activate(load_plugins(), {"paint": {"color": "red"}})

    assert named(plugins, "rotten").state == PluginState.BROKEN
    assert named(plugins, "rotten").installed.problem == f"RuntimeError: no such library ({file}:1)"
    assert named(plugins, "paint").state == PluginState.ACTIVE


def test_an_import_that_exits_does_not_end_the_host(install: Install) -> None:
    file = install("rotten", "import sys; sys.exit(3)")

    manager = load_plugins()

    assert manager.installed["rotten"].problem == f"SystemExit: 3 ({file}:1)"


@pytest.mark.parametrize(
    ("table", "requested", "path"),
    [({"rotten": {}}, set(), "plugins.rotten"), ({}, {"rotten"}, "plugins.rotten")],
)
def test_a_requested_broken_plugin_stops_the_start(
    install: Install, table: dict[str, dict[str, object]], requested: set[str], path: str
) -> None:
    install("rotten", "import no_such_module_at_all")
    manager = load_plugins()

    with pytest.raises(ConfigError, match="no_such_module_at_all") as caught:
        activate(manager, table, requested)

    assert caught.value.path == path


def test_an_installed_plugin_for_a_newer_host_is_broken_and_says_so(install: Install) -> None:
    install("paint", f"ODRADEK_API_VERSION = {API_VERSION + 1}\n{GOOD}")
    manager = load_plugins()

    with pytest.raises(ConfigError, match=r"needs version 2 of the interface, .* install a newer odradek"):
        activate(manager, {"paint": {"color": "red"}})

    assert named(activate(manager, {}), "paint").state == PluginState.BROKEN


def test_a_disabled_broken_plugin_does_not_stop_the_start(install: Install) -> None:
    install("rotten", "import no_such_module_at_all")

    plugins = activate(load_plugins(), {"rotten": {"enabled": False}})

    assert named(plugins, "rotten").state == PluginState.DISABLED


def test_each_plugin_gets_only_its_own_table(install: Install) -> None:
    install("paint", GOOD)
    install("wall", GOOD)

    plugins = activate(load_plugins(), {"paint": {"color": "red"}})

    assert named(plugins, "paint").state == PluginState.ACTIVE
    assert len(named(plugins, "paint").offered(ENRICHER)) == 1
    assert named(plugins, "wall").state == PluginState.IDLE
    assert named(plugins, "wall").offered(ENRICHER) == ()


def test_plugins_are_sorted_by_name(install: Install) -> None:
    install("zebra", GOOD)
    install("ant", GOOD)

    plugins = activate(load_plugins(), {})

    names = [plugin.name for plugin in plugins]
    assert names == sorted(names)
    assert {"ant", "zebra", "stdout"} <= set(names)


def test_a_disabled_plugin_is_not_called(install: Install) -> None:
    install("paint", GOOD)

    plugins = activate(load_plugins(), {"paint": {"color": "red", "enabled": False}})

    assert named(plugins, "paint").state == PluginState.DISABLED
    assert named(plugins, "paint").offered(ENRICHER) == ()


def test_the_command_line_wins_over_disabled(install: Install) -> None:
    install("paint", GOOD)

    plugins = activate(load_plugins(), {"paint": {"color": "red", "enabled": False}}, {"paint"})

    assert named(plugins, "paint").state == PluginState.ACTIVE


def test_a_requested_plugin_that_offers_nothing_stops_the_start(install: Install) -> None:
    install("paint", GOOD)
    manager = load_plugins()

    with pytest.raises(ConfigError, match=r"offers nothing .*; it read color, which the table lacks"):
        activate(manager, {}, {"paint"})


def test_an_unknown_key_is_refused_with_its_path_and_the_nearest_key(install: Install) -> None:
    install("paint", GOOD)
    manager = load_plugins()

    with pytest.raises(ConfigError, match=r"unknown key \(did you mean color\?\)") as caught:
        activate(manager, {"paint": {"colour": "red"}})

    assert caught.value.path == "plugins.paint.colour"


def test_a_table_without_a_plugin_names_the_installed_ones_and_how_to_install(install: Install) -> None:
    install("paint", GOOD)
    manager = load_plugins()
    manager.installed.pop("kafka", None)

    with pytest.raises(ConfigError, match=r"paint.*stdout.*install the extra odradek\[kafka\]") as caught:
        activate(manager, {"kafka": {}})

    assert caught.value.path == "plugins.kafka"


def test_a_request_without_a_plugin_names_the_option() -> None:
    manager = load_plugins()

    with pytest.raises(ConfigError, match="no such plugin is installed") as caught:
        activate(manager, {}, {"no-such-plugin"})

    assert caught.value.path == "--plugin no-such-plugin"
    assert "install the extra" not in caught.value.problem


def test_a_hook_that_exits_is_reported_with_its_table(install: Install) -> None:
    install("leaving", GOOD.replace("return None", "raise SystemExit(3)"))
    manager = load_plugins()

    with pytest.raises(ConfigError, match="odradek_enricher raised SystemExit: 3"):
        activate(manager, {})


def test_a_hook_that_returns_another_type_is_refused(install: Install) -> None:
    install("liar", GOOD.replace("return Enricher()", "return 'Enricher'"))
    manager = load_plugins()

    with pytest.raises(ConfigError, match="odradek_enricher returned str, expected Enricher"):
        activate(manager, {"liar": {"color": "red"}})


def test_an_async_method_that_the_host_does_not_await_is_refused(install: Install) -> None:
    install("later", GOOD.replace("def labels", "async def labels"))
    manager = load_plugins()

    with pytest.raises(ConfigError, match=r"labels \(.*:5\) is an async function") as caught:
        activate(manager, {"later": {"color": "red"}})

    assert caught.value.path == "plugins.later"


@pytest.mark.parametrize("offer", ["Forwarder()", "{'a': Forwarder()}"])
def test_a_forwarder_with_a_wrong_signature_is_refused(install: Install, offer: str) -> None:
    source = FORWARDING.replace("deliver(self, batch)", "deliver(self)")
    file = install("carry", source.replace("return Forwarder()", f"return {offer}"))
    manager = load_plugins()

    with pytest.raises(ConfigError) as caught:
        activate(manager, {})

    assert str(caught.value) == (
        f"plugins.carry: odradek_forwarder returned Forwarder: deliver ({file}:6) takes (); "
        "expected async def deliver(self, batch)"
    )


def test_the_host_reads_the_queue_keys_of_a_forwarder(install: Install) -> None:
    install("carry", FORWARDING)

    plugins = activate(load_plugins(), {"carry": {"queue.max.records": 7, "batch": {"max": {"age.ms": 5}}}})

    settings = named(plugins, "carry").forwarder_settings
    assert settings is not None
    assert (settings.queue_max_records, settings.batch_max_age_ms) == (7, 5)
    assert list(named(plugins, "carry").forwarders) == ["carry"]


def test_a_plugin_may_offer_several_forwarders_by_name(install: Install) -> None:
    install(
        "carry", FORWARDING.replace("return Forwarder()", "return {'a': Forwarder(), 'b-2': Forwarder()}")
    )

    plugins = activate(load_plugins(), {})

    assert list(named(plugins, "carry").forwarders) == ["carry.a", "carry.b-2"]


NAMES = "expected a name of lower case letters, digits, _ and -, at most 50 characters"


@pytest.mark.parametrize(
    ("offer", "told"),
    [
        ("{'a': 7}", ", as 'a', returned int, expected Forwarder: it lacks start, deliver, close"),
        (
            "{'a': Forwarder}",
            "returned the class Forwarder; return an instance of it, Forwarder(...)",
        ),
        ("{'A b': Forwarder()}", f" returned the name 'A b'; {NAMES}"),
        ("{'a.b': Forwarder()}", f" returned the name 'a.b'; {NAMES}"),
        ("{7: Forwarder()}", f" returned the name 7; {NAMES}"),
        ("[Forwarder()]", "returned list, expected Forwarder or Mapping: it lacks start, deliver, close ("),
    ],
)
def test_several_forwarders_are_a_mapping_of_names(install: Install, offer: str, told: str) -> None:
    file = install("carry", FORWARDING.replace("return Forwarder()", f"return {offer}"))

    with pytest.raises(ConfigError) as caught:
        activate(load_plugins(), {})

    assert str(caught.value).startswith("plugins.carry: odradek_forwarder")
    assert told in str(caught.value)
    assert f"({file}:" in str(caught.value)


def test_queue_keys_are_unknown_to_a_plugin_without_a_forwarder(install: Install) -> None:
    install("paint", GOOD)
    manager = load_plugins()

    with pytest.raises(ConfigError, match="unknown key"):
        activate(manager, {"paint": {"queue.max.records": 7}})


def test_a_table_inside_the_table_may_be_nested_or_dotted(install: Install) -> None:
    install("carry", FORWARDING)
    manager = load_plugins()

    for table in ({"headers": {"x.y": "1"}}, {"headers.x.y": "1"}):
        assert named(activate(manager, {"carry": table}), "carry").state == PluginState.ACTIVE


def test_a_key_in_both_spellings_is_refused(install: Install) -> None:
    install("carry", FORWARDING)
    manager = load_plugins()

    with pytest.raises(ConfigError, match="given twice") as caught:
        activate(manager, {"carry": {"headers": {"x": "1"}, "headers.x": "2"}})

    assert caught.value.path == "plugins.carry.headers.x"


@pytest.mark.parametrize(
    ("tables", "requested", "state"),
    [
        ({}, set(), PluginState.DISABLED),
        ({"stdout": {}}, set(), PluginState.ACTIVE),
        ({}, {"stdout"}, PluginState.ACTIVE),
        ({"stdout": {"enabled": False}}, set(), PluginState.DISABLED),
    ],
)
def test_the_built_in_receiver_is_inactive_until_requested(
    tables: dict[str, dict[str, object]], requested: set[str], state: PluginState
) -> None:
    manager = load_plugins()

    plugins = activate(manager, tables, requested)

    assert named(plugins, "stdout").state == state
    assert len(named(plugins, "stdout").offered(CLIENT_TELEMETRY)) == (state == PluginState.ACTIVE)


def test_tracing_prints_calls_and_types_but_no_values(
    install: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ODRADEK_TRACE_PLUGINS", "1")
    install("paint", GOOD)

    activate(load_plugins(), {"paint": {"color": "secret-red"}})

    lines = capsys.readouterr().err
    assert "odradek_enricher(plugins.paint) implemented by: paint\n" in lines
    assert "odradek_enricher -> Enricher\n" in lines
    assert "secret-red" not in lines


def test_tracing_prints_an_exception_of_a_hook(
    install: Install, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ODRADEK_TRACE_PLUGINS", "1")
    install("rotten", GOOD.replace("return None", "raise ZeroDivisionError"))
    manager = load_plugins()

    with pytest.raises(ConfigError):
        activate(manager, {})

    assert "odradek_enricher -> ZeroDivisionError\n" in capsys.readouterr().err


def test_without_a_callback_plugin_quotas_are_kafkas(install: Install) -> None:
    install("tenants", DECIDING)
    plugins = activate(load_plugins(), {"tenants": {"decide": False}})

    found = quota_callback(plugins)

    assert found is None


def test_one_plugin_can_provide_the_quota_callback(install: Install) -> None:
    install("tenants", DECIDING)
    plugins = activate(load_plugins(), {})

    found = quota_callback(plugins)

    assert found == ("tenants", *named(plugins, "tenants").offered(QUOTA_CALLBACK))


def test_two_plugins_with_a_quota_callback_are_refused(install: Install) -> None:
    install("tenants", DECIDING)
    install("teams", DECIDING)
    plugins = activate(load_plugins(), {})

    with pytest.raises(ConfigError, match=r"plugins\.tenants: only one plugin .*, and teams already does"):
        quota_callback(plugins)
