"""The topic on a listener with TLS and a login: read with a properties file, and refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from ingested import until
from spark_dataset import Push, ingested
from spark_topics import TOPIC, fill, records

import odradek.testing
import odradek_spark
from odradek.plugin import PluginConfig
from odradek.testing import RunningHost
from odradek_spark.cli.options import properties
from odradek_spark.companion import Pipeline
from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.source.offsets import OffsetRange
from odradek_spark.source.options import read_options
from odradek_spark.source.topic import TopicReader, Unreachable
from support.certificates import other_authority

HINT = "if its listener requires TLS or a login, set security.protocol"
USERS = {"pipeline": "pipeline-secret"}


@pytest.fixture(scope="module", params=[None, USERS], ids=["SSL", "SASL_SSL"])
def host(request: pytest.FixtureRequest) -> Iterator[RunningHost]:
    with odradek.testing.host(tls=True, users=request.param) as running:
        running.topics.create(TOPIC)
        fill(running.bootstrap, records(20), **running.client())
        yield running


def properties_file(folder: Path, host: RunningHost, **more: str) -> Path:
    """The file of ``--command-config``."""
    client = host.client() | more
    client.pop("bootstrap.servers")
    file = folder / "client.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in client.items()))
    return file


def reader(host: RunningHost, file: Path | None, timeout_s: float = 20) -> TopicReader:
    """The reader of ingest."""
    settings = IngestSettings(
        bootstrap_servers=host.bootstrap, dataset="tables", topic=TOPIC, client=properties(file)
    )
    return TopicReader(read_options(settings.source_options()), timeout_s)


def refusal(found: TopicReader) -> str:
    """The reason why the topic cannot be read. librdkafka may not know it at the end of the first attempt."""
    with pytest.raises(Unreachable) as error:
        found.partitions()
    return str(error.value)


def test_the_topic_is_read(host: RunningHost, tmp_path: Path) -> None:
    with closing(reader(host, properties_file(tmp_path, host))) as found:
        partitions = found.partitions()
        offsets = [each.offset for chunk in found.read(OffsetRange(0, 3, 20)) for each in chunk]

    assert partitions == [0]
    assert offsets == list(range(3, 20))


def test_without_properties_the_error_names_the_setting(host: RunningHost) -> None:
    with closing(reader(host, None, 1)) as found, pytest.raises(Unreachable, match=HINT):
        found.partitions()


def test_an_unknown_authority_is_the_reason(host: RunningHost, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    other.write_text(other_authority().issued.certificate)
    file = properties_file(tmp_path, host, **{"ssl.ca.location": str(other)})

    with closing(reader(host, file, 1)) as found:
        until(lambda: "certificate verify failed" in refusal(found))

        assert HINT not in refusal(found)


@pytest.mark.parametrize("host", [USERS], indirect=True, ids=["SASL_SSL"])
def test_a_wrong_password_is_the_reason(host: RunningHost, tmp_path: Path) -> None:
    file = properties_file(tmp_path, host, **{"sasl.password": "wrong"})

    with closing(reader(host, file, 1)) as found:
        until(lambda: "Authentication failed" in refusal(found))


def test_the_pipeline_beside_a_host_tells_its_lag(
    host: RunningHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = str(tmp_path / "tables")
    ingested(dataset, [Push(client=1, value=1.0)])
    table: dict[str, object] = {"dataset": dataset, "topic": TOPIC}
    lags = []

    for limit_s, more in ((1, {}), (30, {"command.config": str(properties_file(tmp_path, host))})):
        monkeypatch.setattr("odradek_spark.companion.LAG_TIMEOUT_S", limit_s)
        pipeline = odradek_spark.odradek_companion(PluginConfig("plugins.spark", table | more))
        assert isinstance(pipeline, Pipeline)
        lags.append(pipeline.status(host.bootstrap)["lag"])

    assert HINT in str(lags[0])
    assert "command.config in [plugins.spark]" in str(lags[0])
    assert lags[1] == 20
