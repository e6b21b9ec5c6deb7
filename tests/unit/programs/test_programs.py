"""The keys of each program: every declared key is used there, or refused with words."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.cli.program_run import Start
from odradek.gateway.gateway_settings import GatewaySettings
from odradek.lag.lag_settings import GatewayLagSettings
from odradek.plugin.config import ConfigError
from odradek.programs.config import HostConfig, load_config
from odradek.programs.gateway_pairs import pairs_of
from odradek.programs.program_keys import (
    IN_FORWARD,
    IN_GATEWAY,
    IN_SERVE,
    OF_FORWARD,
    SHARED_WITH_GATEWAY,
    SHARED_WITH_SERVE,
    Program,
    check_keys,
    refused,
)
from odradek.settings.setting import walk
from odradek.testing.clock import MockClock
from odradek.waiting.clock import Timer

KEYS = sorted(each.name for _, each in walk(HostConfig) if each.in_file)
FORWARDERS = {each for each in KEYS if each.startswith(("metrics.", "ssl."))} | {
    "cluster.name",
    "log.level",
    "plugin.slow.ms",
    "shutdown.timeout.ms",
    "telemetry.error.policy",
    "telemetry.max.bytes",
    "telemetry.max.decompressed.bytes",
}
OF_GATEWAYS = (GatewaySettings, GatewayLagSettings)
ONLY_GATEWAYS = {each.name for kind in OF_GATEWAYS for _, each in walk(kind)} - set(SHARED_WITH_SERVE)
IN_A_FILE = '[subscriptions.all]\nmetrics = "*"\n'


@pytest.mark.parametrize("program", Program)
def test_each_key_is_used_or_refused_with_words(program: Program) -> None:
    for key in KEYS:
        instead = refused(program, key)
        if instead is None:
            check_keys(program, [key])
            continue
        with pytest.raises(ConfigError) as refusal:
            check_keys(program, [key])
        assert refusal.value.path == key
        assert refusal.value.problem.startswith("is a key of odradek ")
        assert f"which {program} does not use" in refusal.value.problem
        assert refusal.value.problem.endswith(f"; here {instead}" if instead else "does not use")


def test_each_key_has_a_program() -> None:
    assert [key for key in KEYS if all(refused(program, key) is not None for program in Program)] == []


def test_what_a_program_uses() -> None:
    used = {program: {key for key in KEYS if refused(program, key) is None} for program in Program}

    assert used[Program.SERVE] == set(KEYS) - ONLY_GATEWAYS
    assert used[Program.FORWARD] == FORWARDERS
    assert used[Program.GATEWAY] >= ONLY_GATEWAYS | FORWARDERS


def test_the_words_are_about_keys_that_exist() -> None:
    """A key that is renamed is renamed there, too."""
    places = {*IN_SERVE, *IN_GATEWAY, *IN_FORWARD, *OF_FORWARD, *SHARED_WITH_SERVE, *SHARED_WITH_GATEWAY}
    advised = {
        word
        for table in (IN_SERVE, IN_GATEWAY, IN_FORWARD)
        for text in table.values()
        for word in text.split()
        if "." in word
    }

    assert {each for each in places if not any(key == each or key.startswith(each) for key in KEYS)} == set()
    assert advised - set(KEYS) == set()


@pytest.mark.parametrize(
    ("program", "key", "value", "problem"),
    [
        (
            Program.GATEWAY,
            "telemetry.observe",
            "all",
            "is a key of odradek serve, which odradek gateway does not use; here write gateway.observe",
        ),
        (
            Program.SERVE,
            "gateway.observe",
            "all",
            "is a key of odradek gateway, which odradek serve does not use; here write telemetry.observe",
        ),
        (
            Program.GATEWAY,
            "listener.name.plaintext.connections.max.reauth.ms",
            "1000",
            "is a key of odradek serve, which odradek gateway does not use; here the logins of clients pass "
            "through a gateway to the brokers",
        ),
        (
            Program.FORWARD,
            "listeners",
            "PLAINTEXT://127.0.0.1:0",
            "is a key of odradek serve and odradek gateway, which odradek forward does not use",
        ),
    ],
)
def test_a_file_with_a_key_of_another_program_stops_the_start(
    tmp_path: Path, program: Program, key: str, value: str, problem: str
) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text(f'"{key}" = "{value}"\n', encoding="utf-8")

    with pytest.raises(ConfigError) as refusal:
        Start(file, (), (), False, "info", program).config()

    assert (refusal.value.path, refusal.value.problem) == (key, problem)


def test_subscriptions_and_quotas_are_not_for_forwarders(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text(IN_A_FILE, encoding="utf-8")

    assert Start(file, (), (), False, "info", Program.SERVE).config().subscriptions
    with pytest.raises(
        ConfigError, match=r"subscriptions\.all.*is a key of odradek serve and odradek gateway"
    ):
        Start(file, (), (), False, "info", Program.FORWARD).config()


def test_other_readers_of_a_file_take_all_keys(tmp_path: Path) -> None:
    file = tmp_path / "odradek.toml"
    file.write_text('"telemetry.observe" = "all"\n"gateway.observe" = "all"\n', encoding="utf-8")

    assert load_config(file).given == frozenset({"telemetry.observe", "gateway.observe"})


def test_the_claim_with_the_name_of_a_client_reaches_the_pairs_of_a_gateway() -> None:
    settings = "gateway.upstream=kafka:9092", "sasl.oauthbearer.sub.claim.name=email"
    config = load_config(None, settings, ())

    gateway = pairs_of(config, [("kafka", 9092)], None, True, MockClock(), Timer())

    assert gateway.path.subject_claim == "email"
