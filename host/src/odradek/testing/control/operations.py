"""The operations of the control port, by path: the methods of `RunningHost` with ``/`` for ``.``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from odradek.testing.control.arguments import Mismatch, arguments, signature_text
from odradek.testing.control.results import as_json
from odradek.testing.fault import Fault, meant
from odradek.testing.host_topics import StoredRecord
from odradek.testing.running_host import RunningHost
from odradek.testing.telemetry_log import Push
from odradek.waiting.clock import SystemClock

Operation = Callable[..., object]


class UnknownOperation(LookupError):
    """No operation has this path."""


class Operations:
    """Calls methods of a running host with JSON arguments. Any number of threads may call them."""

    def __init__(self, host: RunningHost) -> None:
        self.host = host
        self.made: list[Fault] = []
        """The faults of `fault`, in the order of their ids."""
        self.by_path: dict[str, Operation] = {
            "subscribe": host.subscribe,
            "unsubscribe": host.unsubscribe,
            "quota": host.quota,
            "fault": host.fault,
            "fault/wait": self.wait_for_fault,
            "fault/remove": self.remove_fault,
            "faults": self.faults,
            "requests/of": host.requests.of,
            "requests/wait_for": host.requests.wait_for,
            "telemetry/pushes": self.pushes,
            "telemetry/wait_for": host.telemetry.wait_for,
            "telemetry/wait_for_push": host.telemetry.wait_for_push,
            "telemetry/conformance": host.telemetry.conformance,
            "topics/create": host.topics.create,
            "topics/delete": host.topics.delete,
            "topics/names": host.topics.names,
            "topics/produce": self.produce,
            "topics/records": host.topics.records,
            "groups/names": host.groups.names,
            "groups/committed": host.groups.committed,
            "groups/commit": host.groups.commit,
            "groups/wait_for_commit": host.groups.wait_for_commit,
            "user": host.user,
            "advertise": host.advertise,
            "brokers/open": host.brokers.open,
            "brokers/close": host.brokers.close,
            "brokers/leader": host.brokers.leader,
            "brokers/coordinator": host.brokers.coordinator,
            "brokers/connections": host.brokers.connections,
            "stop": host.stop,
            "kill": host.kill,
            "restart": host.restart,
            "check": host.check,
            "forget": host.forget,
            "clock/now": self.now,
            "clock/advance": self.advance,
        }

    def index(self) -> dict[str, Any]:
        """A description of all operations."""
        return {
            "bootstrap": self.host.advertised,
            "operations": {
                f"POST /{path}": {
                    "arguments": signature_text(function),
                    "description": (function.__doc__ or "").partition("\n")[0],
                }
                for path, function in self.by_path.items()
            },
        }

    def named(self, path: str) -> Operation:
        """Return the operation of a path.

        Raises:
            UnknownOperation: There is none.
        """
        if path not in self.by_path:
            raise UnknownOperation(f"no operation /{path}{meant(path, self.by_path)}; GET / lists them")
        return self.by_path[path]

    def call(self, path: str, given: Mapping[str, object]) -> Any:
        """Call an operation and return its result as JSON.

        Raises:
            UnknownOperation: There is none of that name.
            ValueError: The arguments are not valid. The operation itself may raise further errors.
        """
        function = self.named(path)
        result = function(**arguments(function, given, {Push: self.push}))
        if isinstance(result, Fault):
            self.made.append(result)
            return self.described(result)
        return as_json(result)

    def push(self, number: object) -> Push:
        """Return the push with a number."""
        if type(number) is not int:
            raise Mismatch
        for push in self.host.telemetry.pushes:
            if push.number == number:
                return push
        raise ValueError(f"no push has the number {number}")

    def described(self, fault: Fault) -> dict[str, object]:
        return {"id": self.made.index(fault) + 1, "used": fault.used, "description": str(fault)}

    def fault(self, id: int) -> Fault:  # noqa: A002  a name of the public interface
        if not 0 < id <= len(self.made):
            raise ValueError(f"no fault has the id {id}")
        return self.made[id - 1]

    def faults(self) -> list[dict[str, object]]:
        """The faults, and the number of requests that each has hit. `check` and `forget` empty the list."""
        return [self.described(fault) for fault in list(self.made) if fault in self.host.faults]

    def wait_for_fault(self, id: int, timeout_s: float = 5, times: int = 1) -> dict[str, object]:  # noqa: A002
        """Wait until a fault has hit ``times`` requests."""
        fault = self.fault(id)
        fault.wait(timeout_s, times=times)
        return self.described(fault)

    def remove_fault(self, id: int) -> None:  # noqa: A002
        """Stop a fault from hitting further requests."""
        self.fault(id).remove()

    def pushes(self, client_id: str | None = None, after: Push | None = None) -> list[Push]:
        """The newest pushes, oldest first, including refused and empty ones."""
        with self.host.arrivals.condition:
            return list(self.host.telemetry.matching(client_id, after))

    def produce(
        self,
        name: str,
        values: Sequence[bytes | None],
        key: bytes | None = None,
        headers: Mapping[str, bytes | None] | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> list[StoredRecord]:
        """Produce records in one batch, and wake the consumers that wait for them. No fault hits this."""
        return self.host.topics.produce(
            name, *values, key=key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )

    def now(self) -> int:
        """The time of the host, epoch milliseconds."""
        return (self.host.virtual_clock or SystemClock()).now_ms()

    def advance(self, elapsed_ms: int) -> int:
        """Advance the host's clock, which needs ``--virtual-clock``, and return its time."""
        if self.host.virtual_clock is None:
            raise ValueError("this host uses the machine's clock: start it with --virtual-clock")
        self.host.clock.advance(elapsed_ms)
        return self.now()
