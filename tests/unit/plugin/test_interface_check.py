"""Objects of plugins whose methods the host could not call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from odradek.plugin import ClientQuotaCallback, ClientTelemetryReceiver, ConfigError, Enricher, Forwarder
from odradek.plugin.interface_check import check_interface
from odradek.plugin.places import place_of_definition


class Good:
    """Implements several interfaces, each in an unusual but valid way."""

    def labels(self, client_instance_id: bytes, context: object, *, verbose: bool = False) -> dict[str, str]:
        return {}

    @staticmethod
    def export_metrics(*arguments: object) -> None:
        return None

    async def start(self) -> None:
        return None

    async def deliver(self, batch: object, limit: int = 5) -> None:
        return None

    async def close(self) -> None:
        return None


@pytest.mark.parametrize("interface", [Enricher, ClientTelemetryReceiver, Forwarder])
def test_methods_that_can_be_called_are_accepted(interface: type) -> None:
    check_interface(Good(), (interface,), "plugins.team", "hook")


def with_method(name: str, method: Callable[..., Any] | object) -> object:
    return type("Team", (Good,), {name: method})()


async def waiting(self: object, *arguments: object) -> None:
    return None


@pytest.mark.parametrize(
    ("interface", "name", "method", "problem"),
    [
        (
            Enricher,
            "labels",
            lambda self: {},
            "labels takes (); expected def labels(self, client_instance_id, context)",
        ),
        (
            Enricher,
            "labels",
            lambda self, one, two, three: {},
            "labels takes (one, two, three); expected def labels(self, client_instance_id, context)",
        ),
        (
            Enricher,
            "labels",
            lambda self, one, two, *, three: {},
            "labels takes (one, two, *, three); expected def labels(self, client_instance_id, context)",
        ),
        (
            Enricher,
            "labels",
            waiting,
            "labels is an async function, and the host does not await it; "
            "expected def labels(self, client_instance_id, context)",
        ),
        (Enricher, "labels", {}, "labels is dict; expected def labels(self, client_instance_id, context)"),
        (
            ClientTelemetryReceiver,
            "export_metrics",
            waiting,
            "export_metrics is an async function, and the host does not await it; "
            "expected def export_metrics(self, context, payload)",
        ),
        (
            Forwarder,
            "deliver",
            lambda self, batch: None,
            "deliver is not an async function, and the host awaits it; "
            "expected async def deliver(self, batch)",
        ),
    ],
)
def test_a_method_that_the_host_cannot_call_is_refused_by_name(
    interface: type, name: str, method: object, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check_interface(with_method(name, method), (interface,), "plugins.team", "odradek_hook")

    told = problem.replace(name, name + place_of_definition(method), 1)
    assert str(caught.value) == f"plugins.team: odradek_hook returned Team: {told}"


def test_an_object_without_the_methods_is_refused_with_the_expected_types() -> None:
    with pytest.raises(ConfigError) as caught:
        check_interface(7, (Enricher, ClientQuotaCallback), "plugins.team", "odradek_hook")

    assert str(caught.value) == (
        "plugins.team: odradek_hook returned int, expected Enricher or ClientQuotaCallback: "
        "it lacks labels or quota_metric_tags, quota_limit, update_quota, remove_quota, "
        "quota_reset_required"
    )


def test_a_class_in_the_place_of_an_object_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        check_interface(Good, (Enricher,), "plugins.team", "odradek_hook")

    assert str(caught.value) == (
        "plugins.team: odradek_hook returned the class Good; return an instance of it, Good(...)"
    )


def test_a_method_without_a_signature_is_accepted() -> None:
    check_interface(with_method("labels", staticmethod(partial(dict))), (Enricher,), "plugins.team", "hook")
    check_interface(with_method("labels", dict), (Enricher,), "plugins.team", "hook")
