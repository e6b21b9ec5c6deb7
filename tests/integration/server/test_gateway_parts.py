"""What a gateway consists of."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from odradek.programs.config import load_config
from odradek.programs.gateway import Gateway

PROGRAM = """
import asyncio, json, sys
from odradek.cli.gateway import gateway
from odradek.programs.config import load_config
from odradek.programs.gateway import Gateway

async def main() -> None:
    config = load_config(None, sys.argv[1:])
    made = Gateway(config, [("127.0.0.1", 9)], None, False, print)
    try:
        await made.start()
        routes = dict(made.dispatcher.routes)  # with their handlers
        print(json.dumps([sorted(sys.modules), sorted(routes), len(made.addresses)]))
    finally:
        await made.stop()

asyncio.run(main())
"""
SETTINGS = (
    "listeners=PLAINTEXT://127.0.0.1:0", "gateway.upstream=127.0.0.1:9", "gateway.drain.ms=0",
    "gateway.observe=all", "subscriptions.all.metrics=*",
)  # fmt: skip
GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY = 71, 72
OF_A_HOST = (
    "odradek.broker.broker", "odradek.broker.credentials", "odradek.broker.fetch",
    "odradek.group.classic_protocol",
    "odradek.group.consumer_protocol", "odradek.group.group_coordinator", "odradek.net.sasl_listener",
    "odradek.programs.host", "odradek.security.standard_authorizer", "odradek.testing",
    "odradek.transaction.transaction_coordinator",
)  # fmt: skip
HANDLERS = "odradek.broker.handlers."


def test_a_gateway_has_nothing_of_a_broker_but_the_two_answers_to_telemetry(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, *SETTINGS, f"data.dir={tmp_path}"]

    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)

    modules, apis, listeners = json.loads(ended.stdout)
    assert listeners == 1
    assert apis == [GET_TELEMETRY_SUBSCRIPTIONS, PUSH_TELEMETRY]
    handlers = [each.removeprefix(HANDLERS) for each in modules if each.startswith(HANDLERS)]
    assert handlers == ["get_telemetry_subscriptions", "push_telemetry"]
    assert not {*OF_A_HOST} & {*modules}


def test_the_kill_switch_is_set_before_clients_come(tmp_path: Path) -> None:
    switch = tmp_path / "switch"
    switch.write_text("rewrite-only")
    seen = []

    async def started() -> None:
        config = load_config(None, [*SETTINGS, f"data.dir={tmp_path}", f"gateway.switch={switch}"])
        made = Gateway(config, [("127.0.0.1", 9)], None, False, print)
        listener = made.listeners[0]
        opens = listener.start

        async def start() -> None:
            seen.append(made.pairs.step)
            await opens()

        listener.start = start  # type: ignore[method-assign]
        try:
            await made.start()
        finally:
            await made.stop()

    asyncio.run(started())
    assert seen == ["rewrite-only"]
