"""Real worker processes: each test starts one, which takes a third of a second."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.log.batch_work import BatchesWork, BatchWork
from odradek.log.log_config import LogConfig
from odradek.log.log_validator import InvalidRecords
from odradek.otlp.labeled_payload import PayloadLimits
from odradek.process.payload_workers import PayloadWorkers, Work, WorkerFailed
from odradek.process.worker_process import LENGTH
from odradek.process.worker_settings import WorkerSettings
from odradek.telemetry.payload import PayloadWork
from odradek.wire.compression import Codec, CorruptData, TooLarge
from odradek.wire.error_code import ErrorCode
from support.batches import NOW_MS, batch_of

pytestmark = pytest.mark.ci

LARGE = MetricsData()
LARGE.resource_metrics.add().scope_metrics.add().metrics.add(name="x" * 200_000)


def work(data: bytes, codec: int = 0, max_bytes: int = 1 << 20) -> PayloadWork:
    return PayloadWork(codec=codec, data=data, labels=None, limits=PayloadLimits(max_bytes=max_bytes))


async def outcomes(workers: PayloadWorkers, *works: Work) -> list[Any]:
    loop = asyncio.get_running_loop()
    futures: list[asyncio.Future[Any]] = []

    def settle(future: asyncio.Future[Any]) -> Callable[[Any], None]:
        return future.set_result

    for each in works:
        futures.append(loop.create_future())
        workers.offload(each, settle(futures[-1]))
    return await asyncio.wait_for(asyncio.gather(*futures), 20)


def run(*works: Work, settings: WorkerSettings | None = None) -> list[Any]:
    async def scenario() -> list[bytes | Exception]:
        workers = PayloadWorkers(1, settings)
        try:
            found = await outcomes(workers, *works)
            if settings is not None:
                refused = sum(isinstance(each, WorkerFailed) for each in found)
                assert (workers.taken, workers.refused) == (len(works) - refused, refused)
            return found
        finally:
            await workers.close()

    return asyncio.run(scenario())


def test_payloads_come_back_decompressed_and_errors_as_they_were_raised() -> None:
    good = LARGE.SerializeToString()

    opened, packed, too_large, corrupt = run(
        work(good),
        work(zlib.compress(good, wbits=31), codec=1),
        work(good, max_bytes=1000),
        work(b"not gzip", codec=1),
    )

    assert opened == good
    assert packed == good
    assert isinstance(too_large, TooLarge)
    assert isinstance(corrupt, CorruptData)


def test_batches_come_back_prepared_and_refusals_as_they_were_raised() -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact"}), compression_type=Codec.LZ4)
    batches = batch_of(b"a"), batch_of(b"a", codec=Codec.LZ4), batch_of(b"b", key=None), batch_of(b"c")[:-1]
    works = tuple(BatchWork(batch, config, NOW_MS) for batch in batches)

    (found,) = run(BatchesWork(works))

    rebuilt, unchanged, refused, cut = found
    assert (rebuilt.header.codec, unchanged.body) == (Codec.LZ4, b"")
    assert isinstance(refused, InvalidRecords)
    assert [error.batch_index for error in refused.record_errors] == [0]
    assert cut.code == ErrorCode.INVALID_RECORD


def test_a_worker_that_dies_fails_its_payload_and_is_replaced() -> None:
    good = LARGE.SerializeToString()

    async def scenario() -> tuple[bytes | Exception, bytes | Exception]:
        workers = PayloadWorkers(1)
        await outcomes(workers, work(good))
        (process,) = workers.processes
        process.kill()
        await process.wait()
        (failed,) = await outcomes(workers, work(good))
        (opened,) = await outcomes(workers, work(good))
        await workers.close()
        return failed, opened

    failed, opened = asyncio.run(scenario())

    assert isinstance(failed, WorkerFailed)
    assert opened == good


def test_waiting_bytes_are_bounded_and_refusals_are_counted() -> None:
    good = LARGE.SerializeToString()

    results = run(*[work(good)] * 3, settings=WorkerSettings(queue_max_bytes=250_000))

    assert [isinstance(result, WorkerFailed) for result in results] == [False, True, True]


def test_the_number_of_waiting_payloads_is_bounded() -> None:
    payloads = [work(LARGE.SerializeToString())] * 4

    results = run(*payloads, settings=WorkerSettings(queue_max_requests=2))

    assert [isinstance(result, WorkerFailed) for result in results] == [False, False, True, True]


def test_closing_ends_the_processes() -> None:
    async def scenario() -> list[int | None]:
        workers = PayloadWorkers(2)
        await outcomes(workers, *[work(LARGE.SerializeToString())] * 4)
        processes = list(workers.processes)
        await workers.close()
        return [process.returncode for process in processes]

    codes = asyncio.run(scenario())

    assert codes
    assert set(codes) == {0}


def test_a_worker_that_cannot_be_started_fails_the_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    async def start(self: PayloadWorkers) -> asyncio.subprocess.Process:
        raise RuntimeError("of the test")

    monkeypatch.setattr(PayloadWorkers, "start", start)

    results = run(*[work(b"")] * 2)

    assert [type(result) for result in results] == [WorkerFailed] * 2


def test_a_worker_whose_host_was_killed_ends_without_a_word() -> None:
    command = [sys.executable, "-m", "odradek.process.worker_process"]
    message = pickle.dumps(work(LARGE.SerializeToString()))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stderr is not None
        worker.stdout.close()
        worker.stdin.write(LENGTH.pack(len(message)) + message)
        worker.stdin.flush()
        said = worker.stderr.read()

    assert (said, worker.returncode) == (b"", 0)


def test_a_worker_starts_without_what_only_its_work_needs() -> None:
    program = "import odradek.process.worker_process, sys; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    loaded = set(run.stdout.split())

    ours = {name for name in loaded if name.startswith(("odradek.hosting", "odradek.process"))}
    assert ours == {f"odradek.process{rest}" for rest in ("", ".worker_process", ".giving_way")}
    assert not {"asyncio", "logging", "google.protobuf"} & loaded
