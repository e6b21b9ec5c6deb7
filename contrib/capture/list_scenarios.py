"""Scenarios of ListConfigResources."""

from __future__ import annotations

from contrib.capture.golden import Recorder, Scenario
from contrib.capture.kafka_requests import alter, list_resources, setting


def list_v0(say: Recorder) -> None:
    say.ask("nothing there", list_resources(0))
    say.ask("one", alter(1, setting("sub-1", metrics="*")))
    say.ask("two", alter(1, setting("sub-2", interval_ms="1000")))
    say.ask("both; their order is not promised", list_resources(0))


def list_v1(say: Recorder) -> None:
    say.ask("client metrics, nothing there", list_resources(1, [16]))
    say.ask("one", alter(1, setting("sub-1", metrics="*")))
    say.ask("client metrics", list_resources(1, [16]))
    say.ask("every type", list_resources(1))
    say.ask("topics", list_resources(1, [2]))
    say.ask("brokers", list_resources(1, [4]))
    say.ask("broker loggers", list_resources(1, [8]))
    say.ask("groups", list_resources(1, [32]))
    say.ask("the same type twice", list_resources(1, [16, 16]))


def list_v1_unsupported(say: Recorder) -> None:
    say.ask("one", alter(1, setting("sub-1", metrics="*")))
    say.ask("type 0", list_resources(1, [0]))
    say.ask("type 99", list_resources(1, [99]))
    say.ask("client metrics and type 99", list_resources(1, [16, 99]))


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "list_config_resources_v0_client_metrics": ("names of subscriptions", list_v0),
    "list_config_resources_v1_types": ("each type alone and all of them", list_v1),
    "list_config_resources_v1_unsupported": ("types there are not", list_v1_unsupported),
}
