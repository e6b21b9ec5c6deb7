"""A fleet of clients that push as recorded ones do, over real sockets.

    python -m contrib.fleet --bootstrap-servers 127.0.0.1:9092 --clients 50000    # from the repository's root

The push interval and the codec are what the broker answers. A summary follows at the end, which says how far
the generator was behind its own times.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from contrib.fleet.behavior import mixed
from contrib.fleet.descriptors import allow_descriptors
from contrib.fleet.fleet import Fleet, NoTelemetry
from contrib.fleet.lines import recorded_payload
from contrib.fleet.tally import text

from odradek.client.address import addresses
from odradek.plugin.config import ConfigError

CONNECTIONS = 256
SPARE_DESCRIPTORS = 64
EACH = "each"


def shares(value: str) -> dict[str, float]:
    """Parse ``java=60,librdkafka=30,franz-go=10``."""
    try:
        return {
            name.strip(): float(share)
            for name, _, share in (part.partition("=") for part in value.split(","))
        }
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected java=60,librdkafka=30,franz-go=10, found {value!r}"
        ) from None


def sockets(value: str) -> int | None:
    """A number of connections; None for one of each client."""
    if value == EACH:
        return None
    if not value.isdecimal() or int(value) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on or {EACH}, found {value!r}")
    return int(value)


def arguments_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m contrib.fleet",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT[,...]")
    parser.add_argument("--clients", type=int, default=1_000, help="client instances (default 1000)")
    parser.add_argument(
        "--connections",
        type=sockets,
        default=CONNECTIONS,
        help=f"sockets that the clients share (default {CONNECTIONS}), or `{EACH}` for one of each client",
    )
    parser.add_argument(
        "--mix",
        type=shares,
        default="java=60,librdkafka=30,franz-go=10",
        help="shares of the client libraries",
    )
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="length of the run once all are connected"
    )
    parser.add_argument("--settled", action="store_true", help="begin in the middle of the push interval")
    parser.add_argument("--churn", type=float, default=0.0, help="clients replaced in an hour, percent")
    parser.add_argument("--storm", type=float, metavar="SECONDS", help="lose all connections after this time")
    parser.add_argument("--leave", action="store_true", help="close all clients with a last push at the end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="the summary as JSON")
    arguments = parser.parse_args(argv)
    if arguments.clients < 1:
        parser.error("--clients: expected a number from 1 on")
    return arguments


def possible(arguments: argparse.Namespace) -> int:
    """The number of connections, which the limit of open files bounds; says so if it does."""
    wanted: int = min(arguments.clients, arguments.connections or arguments.clients)
    found = min(wanted, allow_descriptors(wanted + SPARE_DESCRIPTORS) - SPARE_DESCRIPTORS)
    if found < wanted:
        print(f"the limit of open files allows {found} connections, not {wanted}", file=sys.stderr)
    return found


def run(fleet: Fleet, arguments: argparse.Namespace) -> None:
    """Run on the fastest loop that is installed."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        new_event_loop = None
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(fleet.run(arguments.seconds, storm_s=arguments.storm, leave=arguments.leave))


def main(argv: list[str]) -> int:
    arguments = arguments_of(argv)
    try:
        brokers = addresses(arguments.bootstrap_servers, "--bootstrap-servers")
        kinds = mixed(arguments.mix, arguments.clients)
    except (ConfigError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    fleet = Fleet(
        brokers,
        kinds,
        possible(arguments),
        recorded_payload(list(dict.fromkeys(kinds))),
        settled=arguments.settled,
        churn=arguments.churn,
        seed=arguments.seed,
    )
    if len(fleet.lines) < arguments.clients:
        print(f"{arguments.clients} client instances share {len(fleet.lines)} connections", file=sys.stderr)
    try:
        run(fleet, arguments)
    except NoTelemetry as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    summary = fleet.summary()
    print(json.dumps(summary) if arguments.json else text(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
