from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from spark_dataset import Push, commit_ranges, ingested
from spark_topics import TOPIC, fill, records

import odradek.testing
import odradek_spark
from odradek.plugin import Companion, ConfigError, PluginConfig
from odradek.settings.setting import walk
from odradek_spark.companion import Pipeline
from odradek_spark.ingest.progress import batches_since, last_batch, version
from odradek_spark.pipeline_settings import PipelineSettings
from odradek_tables.dataset import Dataset
from odradek_tables.decoder.decode import Counts
from odradek_tables.schemas import PUSHES
from support.reference_page import rows, sections

NOBODY = "127.0.0.1:1"


def configured(**values: object) -> Companion | None:
    keys = {name.replace("_", "."): value for name, value in values.items()}
    config = PluginConfig("plugins.spark", keys)
    companion: Companion | None = odradek_spark.odradek_companion(config)
    config.finish()
    return companion


def test_without_a_dataset_there_is_no_companion() -> None:
    assert configured() is None


def test_the_pipeline_reads_the_host_that_runs_it() -> None:
    companion = configured(
        dataset="/data",
        checkpoint="/notes",
        trigger_interval_ms=5000,
        retention_days_points=3,
        max_bytes_per_trigger=7000,
        min_bytes_per_trigger=60,
        max_payload_bytes=500,
    )

    assert companion is not None
    command = companion.command("localhost:9092")
    assert command[:5] == [sys.executable, "-m", "odradek_spark", "run", "--until-stdin-ends"]
    pairs = dict(zip(command[5::2], command[6::2], strict=True))
    assert pairs["--bootstrap-server"] == "localhost:9092"
    assert (pairs["--dataset"], pairs["--checkpoint"]) == ("/data", "/notes")
    assert pairs["--trigger-interval-ms"] == "5000"
    sizes = [
        pairs[f"--{name}"] for name in ("max-bytes-per-trigger", "min-bytes-per-trigger", "max-payload-bytes")
    ]
    assert sizes == ["7000", "60", "500"]
    assert "points=3" in command
    assert "--command-config" not in pairs


def test_the_pipeline_names_the_protocol_of_its_settings(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=sasl_ssl\n")

    plain, secured = configured(dataset="/data"), configured(dataset="/data", command_config=str(file))

    assert isinstance(plain, Pipeline)
    assert isinstance(secured, Pipeline)
    assert (plain.security_protocol, secured.security_protocol) == ("PLAINTEXT", "SASL_SSL")


def test_the_default_rules_can_be_left_out() -> None:
    companion = configured(dataset="/data", default_rules=False)

    assert companion is not None
    assert "--no-default-rules" in companion.command("localhost:9092")


def test_it_can_read_another_cluster() -> None:
    companion = configured(dataset="/data", bootstrap_servers="kafka:9092")

    assert companion is not None
    assert "kafka:9092" in companion.command("localhost:9092")


def test_an_empty_text_names_no_other_cluster() -> None:
    from odradek_spark.cli.main import spark

    companion = configured(dataset="/data", bootstrap_servers="")

    assert companion is not None
    program, *arguments = companion.command("localhost:9092")[3:]
    given = spark.commands[program].make_context(program, arguments).params
    assert given["bootstrap_servers"] == "localhost:9092"


def test_a_key_and_its_option_have_the_same_name() -> None:
    from odradek_spark.cli.main import spark

    keys = [each.name for _, each in walk(PipelineSettings) if not each.name.startswith("retention.days.")]
    kafkas = {"bootstrap.servers": "--bootstrap-server"}  # Kafka's tools shorten the name of the key

    options = {name for option in spark.commands["run"].params for name in option.opts}

    assert len(keys) >= 17
    assert [key for key in keys if kafkas.get(key, "--" + key.replace(".", "-")) not in options] == []


def test_run_accepts_the_command_line(tmp_path: Path) -> None:
    from odradek_spark.cli.main import spark

    rules = tmp_path / "rules.toml"
    rules.touch()
    companion = configured(dataset="/data", rules_file=str(rules))

    assert companion is not None
    program, *arguments = companion.command("localhost:9092")[3:]
    command = spark.commands[program]
    context = command.make_context(program, arguments)
    assert context.params["rules_file"] == rules
    assert context.params["until_stdin_ends"]


@pytest.mark.parametrize("key", ["datasets", "retention_days_client"])
def test_an_unknown_key_stops_the_host(key: str) -> None:
    with pytest.raises(ConfigError, match=key.replace("_", ".")):
        configured(**{"dataset": "/data", key: 1})


def test_the_last_batch_is_read_from_the_history_of_the_tables(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    ingested(str(tmp_path), [Push(client=1, value=1.0), Push(client=2, value=2.0)])

    found = last_batch(str(tmp_path))

    assert found is not None
    at, batch = found
    assert batch == Counts(2, 2, batches=1)
    assert abs((at - before).total_seconds()) < 60
    now = version(Dataset(str(tmp_path)))
    assert batches_since(Dataset(str(tmp_path)), 0) == (Counts(2, 2, batches=1), now)
    assert batches_since(Dataset(str(tmp_path)), now) == (Counts(), now)


def test_a_dataset_without_a_batch_has_no_last_batch(tmp_path: Path) -> None:
    Dataset(str(tmp_path)).create()

    companion = configured(dataset=str(tmp_path))

    assert last_batch(str(tmp_path)) is None
    assert companion is not None
    assert companion.status(NOBODY) == {"last batch": "none"}


def test_without_an_answering_broker_the_lag_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingested(str(tmp_path), [Push(client=1, value=1.0)])
    monkeypatch.setattr("odradek_spark.companion.LAG_TIMEOUT_S", 0.2)
    companion = configured(dataset=str(tmp_path))

    assert isinstance(companion, Pipeline)
    status = companion.status(NOBODY)

    assert status["pushes"] == 1
    assert str(status["lag"]).startswith("unknown: ")


def test_the_lag_includes_partitions_outside_the_last_batch(tmp_path: Path) -> None:
    dataset = Dataset(str(tmp_path))
    dataset.create()
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, 2)
        fill(host.bootstrap, records(20, partitions=2))
        for covered in ({0: (0, 4), 1: (0, 10)}, {0: (4, 7)}):
            commit_ranges(dataset, PUSHES, [], covered, TOPIC)
        companion = configured(dataset=str(tmp_path), topic=TOPIC)

        assert isinstance(companion, Pipeline)
        status = companion.status(host.bootstrap)

    assert status["lag"] == 3


def test_a_missing_topic_has_no_lag(tmp_path: Path) -> None:
    ingested(str(tmp_path), [Push(client=1, value=1.0)])
    companion = configured(dataset=str(tmp_path), topic="nope")
    with odradek.testing.host() as host:
        assert isinstance(companion, Pipeline)
        status = companion.status(host.bootstrap)

    assert str(status["lag"]).startswith("unknown: topic nope: ")


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("topic.interval.ms", 2**31, "expected a whole number from 1 to 2147483647, found 2147483648"),
        ("trigger.interval.ms", 99, "expected a whole number from 100 to 9223372036854775807, found 99"),
        ("retention.days.points", -1, "expected a whole number from 0 to 2147483647, found -1"),
        ("topic.format", "json", "expected one of odradek, otlp_proto, otlp_json, found 'json'"),
        ("rollup.fleet.labels", ["team"], "expected a list of client_id, group_id, found 'team'"),
        ("rollup.client.metrics", [], "expected one or more of texts, found ''"),
        ("rules.file", "/none", "expected a file, found '/none'"),
    ],
)
def test_a_wrong_value_names_its_key_and_bounds(key: str, value: object, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(**{"dataset": "/data", key: value})

    assert str(caught.value) == f"plugins.spark.{key}: {told}"


def test_every_command_is_in_the_docs() -> None:
    from odradek_spark.cli.main import spark

    written = set(rows(sections("reference/spark.md")["Commands"])) - {"command"}

    assert written == {f"odradek spark {name}" for name in spark.commands}
