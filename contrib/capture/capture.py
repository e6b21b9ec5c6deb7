"""Send requests to a real Apache Kafka broker and record its responses; see README.md in this folder.

python -m contrib.capture.capture [--kafka VERSION] [--only TEXT] [--out FOLDER] [--log]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from contrib.capture import (
    acl_scenarios,
    broker_config_scenarios,
    cluster_scenarios,
    config_scenarios,
    get_scenarios,
    group_scenarios,
    list_scenarios,
    odd_batch_scenarios,
    offset_scenarios,
    push_scenarios,
    quota_scenarios,
    record_scenarios,
    share_scenarios,
    topic_scenarios,
)
from contrib.capture.golden import APPLY_S, GoldenFolder, Scenario
from contrib.capture.kafka_node import NEWEST, TELEMETRY_MAX_BYTES, TELEMETRY_REPORTER, kafka_node
from contrib.capture.kafka_requests import list_resources

GOLDEN = Path(__file__).resolve().parent.parent.parent / "tests" / "conformance" / "golden"
Scenarios = dict[str, tuple[str, Scenario]]
NODES: dict[str, Scenarios] = {
    TELEMETRY_REPORTER: config_scenarios.SCENARIOS
    | get_scenarios.SCENARIOS
    | push_scenarios.SCENARIOS
    | list_scenarios.SCENARIOS
    | topic_scenarios.SCENARIOS
    | cluster_scenarios.SCENARIOS
    | group_scenarios.SCENARIOS
    | record_scenarios.SCENARIOS
    | odd_batch_scenarios.SCENARIOS
    | broker_config_scenarios.SCENARIOS
    | quota_scenarios.SCENARIOS
    | acl_scenarios.SCENARIOS
    | offset_scenarios.SCENARIOS,
    "": config_scenarios.WITHOUT_RECEIVER | push_scenarios.WITHOUT_RECEIVER,
}
"""The scenarios, by the metrics reporters of the node."""
SINCE_4_4 = config_scenarios.SINCE_4_4 | offset_scenarios.SINCE_4_4 | share_scenarios.SCENARIOS
"""The scenarios with versions that Kafka 4.3 does not have; a node with the reporter answers them."""


def clean(golden: GoldenFolder) -> None:
    """Delete every subscription, so that each file starts without any."""
    recorder = golden.recorder("not kept")
    deletion = config_scenarios.deletion(recorder.ask("names", list_resources(0)))
    if deletion is not None:
        recorder.ask("delete", deletion)
    recorder.channel.close()
    time.sleep(APPLY_S)


def capture(golden: GoldenFolder, scenarios: Scenarios) -> None:
    for name, (description, scenario) in scenarios.items():
        clean(golden)
        recorder = golden.recorder(description)
        scenario(recorder)
        golden.save(name, recorder)


def of_version(kafka: str) -> dict[str, Scenarios]:
    """The scenarios of `NODES` that this version of Kafka can answer."""
    if not kafka.startswith("4.3."):
        return NODES | {TELEMETRY_REPORTER: NODES[TELEMETRY_REPORTER] | SINCE_4_4}
    return NODES


def run(
    kafka: str,
    reporters: str,
    scenarios: Scenarios,
    out: Path,
    show_log: bool,
    overrides: Sequence[str] = (),
) -> None:
    """Start a node for these scenarios and stop it."""
    receiver = f"{'a' if reporters else 'no'} telemetry receiver"
    settings = ", ".join([f"telemetry.max.bytes={TELEMETRY_MAX_BYTES}", receiver, *overrides])
    with kafka_node(reporters, overrides, kafka) as node:
        golden = GoldenFolder(out, node.port, f"kafka {node.version}", settings)
        capture(golden, scenarios)
        if show_log:
            print(node.log.read_text())
    print(f"{len(golden.written)} files in {out}, {golden.broker}, {settings}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Record golden bytes from a real Kafka node.")
    parser.add_argument("--kafka", default=NEWEST, metavar="VERSION", help="(default: %(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="scenarios whose name contains TEXT")
    parser.add_argument("--out", type=Path, help=f"folder of the files (default: {GOLDEN}/VERSION)")
    parser.add_argument("--log", action="store_true", help="show the node's warnings at the end")
    args = parser.parse_args()
    out = args.out or GOLDEN / args.kafka
    out.mkdir(parents=True, exist_ok=True)
    for reporters, scenarios in of_version(args.kafka).items():
        chosen = {name: scenario for name, scenario in scenarios.items() if args.only in name}
        if chosen:
            run(args.kafka, reporters, chosen, out, args.log)
    secured = acl_scenarios.WITH_AUTHORIZER
    chosen = {name: scenario for name, scenario in secured.items() if args.only in name}
    if chosen:
        run(args.kafka, TELEMETRY_REPORTER, chosen, out, args.log, acl_scenarios.AUTHORIZER)


if __name__ == "__main__":
    main()
