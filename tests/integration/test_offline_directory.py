"""A host that loses one of its log directories, or all of them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError
from odradek.client.resources import NewTopic
from odradek.testing.host_thread import HostThread
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.failing_disk import FailingDisk, disk
from support.hosts import LOOPBACK, ServeProcess
from support.spooling import FarSide, down, hosting, names, push_all, until

__all__ = ["disk"]


def settings(tmp_path: Path) -> tuple[str, ...]:
    directories = ",".join(str(tmp_path / name) for name in ("one", "two"))
    return f"log.dirs={directories}", "telemetry.topic.partitions=4", "telemetry.linger.ms=0"


def partitions_in(host: HostThread, directory: Path) -> list[int]:
    """The partitions of the telemetry topic in a directory."""
    topic = host.host.broker.topics.named("__client_telemetry")
    assert topic is not None
    return [index for index, log in enumerate(topic.partitions) if log.directory.parent == directory]


def lose(host: HostThread, disk: FailingDisk, directory: Path) -> None:
    """Let the disk of a directory fail, and the host notice it."""
    topic = host.host.broker.topics.named("__client_telemetry")
    assert topic is not None
    disk.fail(directory)
    with pytest.raises(ApiError):
        host.call(topic.partitions[partitions_in(host, directory)[0]].flush)


def offline_count(host: HostThread) -> float:
    rows = host.call(lambda: list(host.host.metric_rows()))
    return next(row.value for row in rows if row.name == "kafka.log.log.manager.offline.log.directory.count")


def test_telemetry_goes_on_in_the_other_directory(
    tmp_path: Path, disk: FailingDisk, caplog: pytest.LogCaptureFixture
) -> None:
    far = FarSide()
    with hosting(tmp_path / "data", *settings(tmp_path), far=far) as host:
        first = push_all(host, range(20))
        until(host, lambda: len(far.taken) == 20)

        lose(host, disk, tmp_path / "one")
        second = push_all(host, range(20, 40))
        until(host, lambda: len(far.taken) == 40)

        assert offline_count(host) == 1
        assert len(partitions_in(host, tmp_path / "one")) == 2
    assert {*first, *second} == {ErrorCode.NONE}
    assert sorted(far.names) == sorted(names(range(40)))
    assert not [record for record in caplog.records if record.exc_info]
    errors = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert [record.getMessage() for record in errors] == ["a log directory is offline"]


def test_a_restart_without_the_directory_loses_and_repeats_nothing(tmp_path: Path, disk: FailingDisk) -> None:
    far = FarSide(behavior=down)
    with hosting(tmp_path / "data", *settings(tmp_path), far=far) as host:
        push_all(host, range(20))
        stranded = sum(
            host.host.broker.topics.log("__client_telemetry", index).log_end_offset
            for index in partitions_in(host, tmp_path / "one")
        )
        disk.fail(tmp_path / "one")

    far.behavior = lambda batch: None
    with hosting(tmp_path / "data", *settings(tmp_path), far=far) as host:
        push_all(host, range(20, 30))
        until(host, lambda: len(far.taken) == 30 - stranded)

        assert offline_count(host) == 1
    disk.recover()
    with hosting(tmp_path / "data", *settings(tmp_path), far=far) as host:
        until(host, lambda: len(far.taken) == 30)

        assert offline_count(host) == 0
    assert stranded > 0
    assert sorted(far.names) == sorted(names(range(30)))


@pytest.mark.ci
def test_a_host_without_any_directory_stops_with_one_line(tmp_path: Path) -> None:
    host = ServeProcess(
        "--set", f"listeners={LOOPBACK}", "--set", f"data.dir={tmp_path / 'data'}",
        "--set", f"log.dirs={tmp_path / 'one'},{tmp_path / 'two'}",
    )  # fmt: skip
    try:
        for name in ("one", "two"):
            (tmp_path / name).rename(tmp_path / f"lost-{name}")
        with AdminClient(host.bootstrap, "test", 10) as admin, pytest.raises(ClientError):
            admin.create_topics([NewTopic(name="t", partitions=1)])
        status = host.process.wait(15)
    finally:
        if host.process.poll() is None:
            host.kill()
    host.join()

    assert status == 1
    assert (
        host.errors[-1] == "odradek stopped: all log directories are offline; repair the disks, then restart"
    )
    assert sum("a log directory is offline" in line for line in host.errors) == 2
    assert not any("Traceback" in line for line in host.errors)
