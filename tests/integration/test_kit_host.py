"""A host in a test: how it starts, which settings it accepts, and that it leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import logging
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from pathlib import Path

import pytest

import odradek.testing
from odradek.plugin import ConfigError
from odradek.programs.config import load_config
from odradek.programs.host import Host
from odradek.testing import NothingCame, RunningHost, VirtualClock, host_context, host_thread
from odradek.testing.host_thread import HostThread
from odradek.wire.api_error import ApiError
from odradek.wire.messages.api_versions import ApiVersionsRequest
from support.hosts import LOOPBACK
from support.wire_client import WireClient

STARTS = 100


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder for temporary files that no other test uses at the same time."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setattr(host_context, "SHARED_MEMORY", place)


def resources() -> dict[str, set[str]]:
    """The resources of the process, and its temporary folder."""
    gc.collect()
    descriptors = Path("/proc/self/fd")
    open_files = {str(link.readlink()) for link in descriptors.iterdir() if link.exists()}
    return {
        "threads": {thread.name for thread in threading.enumerate()},
        "open": {f"{len(list(descriptors.iterdir()))} descriptors", *open_files},
        "folders": {str(path) for path in Path(tempfile.gettempdir()).iterdir()},
    }


def then_tasks(
    stop: Callable[[], Awaitable[None]], found: list[set[asyncio.Task[object]]]
) -> Callable[[], Coroutine[object, object, None]]:
    """Stop the host, then record the other tasks that are still on the loop."""

    async def stopped() -> None:
        await stop()
        found.append(asyncio.all_tasks() - {asyncio.current_task()})

    return stopped


def test_a_hundred_starts_and_stops_leave_nothing_behind() -> None:
    with odradek.testing.host() as host, WireClient(host.address) as client:
        client.introduce()
    before = resources()
    waited_s, worked_s = list[float](), list[float]()
    tasks: list[set[asyncio.Task[object]]] = []

    for _ in range(STARTS):
        begin_s, begin_cpu_s = time.perf_counter(), time.process_time()
        with odradek.testing.host() as host:
            waited_s.append(time.perf_counter() - begin_s)
            worked_s.append(time.process_time() - begin_cpu_s)
            host.host.stop = then_tasks(host.host.stop, tasks)  # type: ignore[method-assign]
            with WireClient(host.address) as client:
                client.introduce()

    assert resources() == before
    assert tasks == [set()] * STARTS
    assert sorted(worked_s)[STARTS // 2] < 0.3
    assert min(waited_s) < 0.3  # on a busy machine most starts wait for a core


def test_a_failing_test_stops_its_host_too() -> None:
    threads = threading.active_count()

    context = odradek.testing.host()
    client = WireClient(context.__enter__().address)
    client.introduce()

    context.__exit__(ZeroDivisionError, ZeroDivisionError(), None)

    assert client.closed_by_peer()
    client.socket.close()
    assert threading.active_count() == threads


def test_a_host_stops_while_a_client_waits_for_an_answer() -> None:
    with odradek.testing.host() as host:
        host.fault("ApiVersions", delay_ms=60_000)
        client = WireClient(host.address)
        client.send_bytes(
            client.frame(ApiVersionsRequest(client_software_name="raw", client_software_version="1"), 3)
        )
        host.requests.arrivals.wait_for(lambda: len(host.requests) or None, 5, "request")

    client.socket.close()


def test_a_coroutine_can_enter_a_host() -> None:
    async def use() -> str:
        async with odradek.testing.host() as host:
            await asyncio.to_thread(host.subscribe)
            return host.bootstrap

    assert asyncio.run(use()).startswith("127.0.0.1:")


def test_a_coroutine_cancelled_on_entry_leaves_no_host() -> None:
    before = resources()["folders"]

    async def impatient() -> None:
        async with asyncio.timeout(0), odradek.testing.host():
            raise AssertionError("it was entered")

    with pytest.raises(TimeoutError):
        asyncio.run(impatient())

    assert resources()["folders"] == before
    assert "odradek-host" not in resources()["threads"]


def test_configuration_keys_are_keyword_arguments() -> None:
    with odradek.testing.host(
        telemetry_max_bytes=1_234, num_partitions=3, subscriptions={"all": {"metrics": "*"}}
    ) as host:
        assert host.host.config.telemetry.telemetry_max_bytes == 1_234
        assert host.host.config.broker.num_partitions == 3
        assert list(host.host.telemetry.subscriptions.by_name) == ["all"]


@pytest.mark.parametrize("config", [{"no_such_key": 1}, {"telemetry_max_bytes": "much"}])
def test_a_configuration_error_is_raised_on_entry(
    config: dict[str, object],
) -> None:
    before = resources()

    with pytest.raises(ConfigError):
        odradek.testing.host(**config).__enter__()  # type: ignore[arg-type]

    assert resources() == before


def test_a_host_that_cannot_listen_leaves_nothing_behind() -> None:
    with odradek.testing.host() as first:
        before = resources()

        with pytest.raises(ConfigError, match="listeners: cannot listen"):
            odradek.testing.host(listeners=f"PLAINTEXT://{first.bootstrap}").__enter__()

        assert resources() == before


def test_data_in_a_folder_of_the_test_are_available_to_the_next_host(tmp_path: Path) -> None:
    with odradek.testing.host(data_dir=tmp_path) as first:
        first.topics.create("kept", 2, retention_ms=1_000)
        first.subscribe("org.", name="kept")

    with odradek.testing.host(data_dir=tmp_path) as second:
        assert second.topics.names() == ["kept"]
        assert "kept" in second.host.telemetry.subscriptions.by_name


def test_installed_plugins_are_inactive_unless_named() -> None:
    with odradek.testing.host() as bare, odradek.testing.host(plugins={"stdout": {}}) as with_one:
        assert bare.host.plugins.all == []
        assert [plugin.name for plugin in with_one.host.plugins.all] == ["stdout"]


def test_a_plugin_that_is_not_installed_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no such plugin is installed; installed: .*stdout"):
        odradek.testing.host(plugins={"absent": {}}).__enter__()


def test_a_stopped_host_reports_it() -> None:
    with odradek.testing.host() as host:
        pass

    with pytest.raises(RuntimeError, match="the host has stopped"):
        host.subscribe()


def test_requests_of_a_host_are_available_after_it_stops() -> None:
    with odradek.testing.host() as host, WireClient(host.address) as client:
        bootstrap = host.bootstrap
        client.introduce()

    assert host.bootstrap == bootstrap
    assert host.requests.of("ApiVersions")
    with pytest.raises(NothingCame, match="no data point"):
        host.telemetry.wait_for(timeout_s=0)


def test_a_running_host_cannot_be_entered_again() -> None:
    context = odradek.testing.host()
    before = threading.active_count()

    with context, pytest.raises(RuntimeError, match="is already running"):
        context.__enter__()

    assert threading.active_count() == before
    with context as again:
        assert again.topics.names() == []


def test_a_host_logs_from_the_level_that_its_configuration_says() -> None:
    ours = logging.getLogger("odradek")
    before = ours.level

    with odradek.testing.host(log_level="debug") as host:
        level = host.call(lambda: ours.level)

    assert (level, ours.level) == (logging.DEBUG, before)


def test_an_interrupted_start_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(Future[None]):
        def result(self, timeout: float | None = None) -> None:
            super().result(timeout)
            raise KeyboardInterrupt

    monkeypatch.setattr(host_thread, "Future", Interrupted)
    before = resources()

    with pytest.raises(KeyboardInterrupt):
        odradek.testing.host().__enter__()

    assert resources() == before


def test_a_start_that_is_interrupted_while_it_waits_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    class Interrupted(Future[None]):
        def result(self, timeout: float | None = None) -> None:
            assert begun.wait(timeout)
            raise KeyboardInterrupt

    class Waiting(HostThread):
        """Its host does not start before it is told to stop, like one whose plugin does not listen."""

        def make(self) -> Host:
            host = super().make()
            start = host.start

            async def late() -> None:
                begun.set()
                await self.ended.wait()
                await start()

            host.start = late  # type: ignore[method-assign]
            return host

    monkeypatch.setattr(host_thread, "Future", Interrupted)
    before = resources()
    thread = Waiting(load_config(overrides=[f"data.dir={tmp_path / 'data'}", f"listeners={LOOPBACK}"]))
    monkeypatch.setattr(host_thread, "wait", lambda _futures, _timeout_s: None)

    with pytest.raises(KeyboardInterrupt):
        thread.start()

    assert resources() == before


def test_a_virtual_clock_belongs_to_one_host() -> None:
    clock = VirtualClock()
    with pytest.raises(RuntimeError, match="no host uses this clock"):
        clock.advance(1)

    with odradek.testing.host(clock=clock), pytest.raises(RuntimeError, match="belongs to one host"):
        odradek.testing.host(clock=clock).__enter__()


def test_a_failure_while_stopping_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = odradek.testing.host(data_dir=tmp_path)
    host = context.__enter__()
    stop = host.host.stop

    async def fail() -> None:
        await stop()
        raise OSError("disk is gone")

    monkeypatch.setattr(host.host, "stop", fail)

    with pytest.raises(OSError, match="disk is gone"):
        context.__exit__()


def test_topics_are_created_and_read_without_the_protocol(odradek_host: RunningHost) -> None:
    odradek_host.topics.create("numbers", partitions=2, cleanup_policy="compact")

    assert odradek_host.topics.names() == ["numbers"]
    assert odradek_host.topics.records("numbers") == []
    with pytest.raises(ApiError, match="no topic absent"):
        odradek_host.topics.records("absent")


def test_hosts_of_one_test_are_independent(odradek_hosts: Callable[..., RunningHost]) -> None:
    first, second = odradek_hosts(node_id=1), odradek_hosts(node_id=2)

    first.topics.create("here")

    assert first.bootstrap != second.bootstrap
    assert second.topics.names() == []


def test_a_call_runs_in_the_thread_of_its_host(odradek_host: RunningHost) -> None:
    inside = odradek_host.call(lambda: odradek_host.call(threading.current_thread))

    assert inside is odradek_host.thread
