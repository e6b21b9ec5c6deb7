"""Which batches the sink adds to the tables, and which it refuses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import TaskContext
from spark_dataset import Push, record

from odradek_spark.sink.commit import Batch, NotShared, TableConflict, check_written, commit
from odradek_spark.sink.write_options import WriteOptions, write_options
from odradek_spark.sink.writers import TablesBatchWriter, TablesStreamWriter
from odradek_spark.sink.written import SeveralTopics, Written, write_records
from odradek_spark.source.options import OptionError
from odradek_tables.dataset import Dataset
from odradek_tables.decoder.decode import Decoder
from odradek_tables.files import write_files
from odradek_tables.schemas import INGESTED, POINTS, PUSHES

RECORD_COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(str(tmp_path / "tables"))


def task(dataset: Dataset, start: int, stop: int, query: str | None = "q", topic: str = "t") -> Written:
    """The result of a task that wrote the records of a range."""
    written = Written(query, topic)
    records = [record(Push(client=1, value=float(each)), each) for each in range(start, stop)]
    write_records([records] if records else [], Decoder(), dataset.root, written)
    return written


def add(dataset: Dataset, start: int, stop: int, number: int, query: str | None = "q", **more: bool) -> bool:
    return commit(dataset, Batch.of([task(dataset, start, stop, query)], number, **more))


def offsets(dataset: Dataset) -> list[int]:
    found = dataset.existing(PUSHES).to_pyarrow_table(columns=["src_offset"])
    return sorted(found["src_offset"].to_pylist())


def test_a_repeated_batch_adds_nothing(dataset: Dataset) -> None:
    add(dataset, 0, 3, 0)
    add(dataset, 3, 5, 1)

    repeated = add(dataset, 3, 5, 1)

    assert not repeated
    assert offsets(dataset) == [0, 1, 2, 3, 4]


def test_a_batch_that_only_some_tables_have_is_completed(dataset: Dataset) -> None:
    add(dataset, 0, 3, 0)
    batch = Batch.of([task(dataset, 3, 5)], 1)
    commit(dataset, batch, INGESTED[:2])

    commit(dataset, batch)

    assert offsets(dataset) == [0, 1, 2, 3, 4]
    assert dataset.existing(POINTS).to_pyarrow_table().num_rows == 5


def test_the_tasks_of_a_batch_are_one_commit(dataset: Dataset) -> None:
    tasks = [task(dataset, 0, 2), task(dataset, 4, 6), None, task(dataset, 2, 4)]

    commit(dataset, Batch.of(tasks, 0))

    assert offsets(dataset) == list(range(6))
    last = dataset.existing(PUSHES).history(1)[0]
    assert (last["sourceRanges"], last["pushes"]) == ('{"0": [0, 6]}', "6")
    assert dataset.source_offsets(PUSHES, "t", [0]) == {0: 6}


def test_a_query_may_skip_offsets_and_the_history_says_how_many(dataset: Dataset) -> None:
    add(dataset, 0, 3, 0)

    add(dataset, 7, 8, 1)

    assert dataset.existing(PUSHES).history(1)[0]["lost"] == "4"


def test_an_empty_batch_marks_only_the_beginning(dataset: Dataset) -> None:
    added = [add(dataset, 0, 0, 0), add(dataset, 0, 0, 1), add(dataset, 9, 10, 2)]

    assert added == [True, False, True]
    assert offsets(dataset) == [9]


def test_a_second_query_is_refused_if_the_table_has_its_records(dataset: Dataset) -> None:
    add(dataset, 0, 3, 0)
    add(dataset, 3, 5, 0, "other")

    with pytest.raises(TableConflict, match="up to offset 5, but the next batch is 3 to 6: another ingester"):
        add(dataset, 3, 6, 1)
    assert offsets(dataset) == [0, 1, 2, 3, 4]


def test_a_new_checkpoint_continues_where_the_table_ends_or_says_that_it_does_not(dataset: Dataset) -> None:
    add(dataset, 0, 3, 0)

    problem = r'^\[ODRADEK_TABLE_CONFLICT\] .*begins at 5. Continue .*startingOffsets=\{"t": \{"0": 3\}\}'
    with pytest.raises(TableConflict, match=problem):
        add(dataset, 5, 6, 0, "other")
    add(dataset, 5, 6, 0, "other", allow_new_checkpoint=True)
    add(dataset, 6, 7, 0, "third")

    assert offsets(dataset) == [0, 1, 2, 5, 6]


def test_a_checkpoint_of_other_tables_is_refused(dataset: Dataset) -> None:
    dataset.create()

    with pytest.raises(TableConflict, match="its checkpoint has 7 batches: it belongs to another dataset"):
        add(dataset, 40, 44, 7)


def test_rows_of_a_table_need_the_checkpoint_of_its_query(dataset: Dataset) -> None:
    rows = Decoder().decode([record(Push(client=1, value=1.0), 0)]).points
    first, again, other = (
        Written(query, None, write_files(dataset.root, POINTS, rows)) for query in ("q", "q", "other")
    )
    tables = (POINTS,)
    commit(dataset, Batch.of([first], 0), tables)
    commit(dataset, Batch.of([again], 0), tables)

    with pytest.raises(TableConflict, match="another query has written to the table"):
        commit(dataset, Batch.of([other], 0), tables)
    commit(dataset, Batch.of([other], 0, allow_new_checkpoint=True), tables)

    assert dataset.existing(POINTS).to_pyarrow_table().num_rows == 2


def test_a_batch_write_adds_no_record_twice(dataset: Dataset) -> None:
    add(dataset, 0, 3, 0)

    added = [add(dataset, 0, 3, 0, None), add(dataset, 3, 5, 0, None)]

    assert added == [False, True]
    assert offsets(dataset) == [0, 1, 2, 3, 4]


def test_records_of_two_topics_are_refused(dataset: Dataset) -> None:
    tasks = [task(dataset, 0, 1, topic="a"), task(dataset, 1, 2, topic="b")]

    with pytest.raises(SeveralTopics, match=r"\[ODRADEK_SEVERAL_TOPICS\] .* topics a and b"):
        Batch.of(tasks, 0)


def test_files_that_workers_wrote_elsewhere_are_not_committed(dataset: Dataset, tmp_path: Path) -> None:
    here = task(dataset, 0, 1).manifests
    elsewhere = task(Dataset(str(tmp_path / "worker")), 0, 1).manifests

    check_written(dataset, here)

    with pytest.raises(NotShared, match=r"\[ODRADEK_NOT_SHARED\] .*a worker wrote this file, but the driver"):
        check_written(dataset, elsewhere)


def test_rows_are_recognized_by_their_columns() -> None:
    given = {"path": "p", "checkpointLocation": "c"}

    assert write_options(given, RECORD_COLUMNS, overwrite=False) == WriteOptions(root="p")
    assert write_options(given, POINTS.schema.names[::-1], overwrite=False).table == POINTS


@pytest.mark.parametrize(
    ("given", "columns", "problem"),
    [
        ({}, RECORD_COLUMNS, "option path: expected the folder of the tables"),
        ({"path": "p", "tabel": "points"}, RECORD_COLUMNS, "the nearest is table"),
        ({"path": "p"}, ["value"], "the rows are neither records of the topic, .* nor of a table"),
        ({"path": "p", "table": "x"}, ["value"], "option table: expected one of points, "),
        ({"path": "p", "table": "dead_letter"}, ["date", "x"], "differ in the columns bytes, "),
        ({"path": "p", "topicFormat": "x"}, RECORD_COLUMNS, "option topicFormat: expected odradek, "),
        ({"path": "p", "maxPayloadBytes": "x"}, RECORD_COLUMNS, "option maxPayloadBytes: expected a whole"),
    ],
)
def test_options_of_the_sink_are_refused(given: dict[str, str], columns: list[str], problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        write_options(given, columns, overwrite=False)


def test_the_sink_only_appends() -> None:
    with pytest.raises(OptionError, match="the tables only grow: use the mode append"):
        write_options({"path": "p"}, RECORD_COLUMNS, overwrite=True)


@pytest.mark.parametrize(("writer", "query"), [(TablesStreamWriter, "q"), (TablesBatchWriter, None)])
def test_only_the_batches_of_a_stream_have_numbers(
    dataset: Dataset,
    writer: type[TablesStreamWriter | TablesBatchWriter],
    query: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_a_query = SimpleNamespace(getLocalProperty={"sql.streaming.queryId": "q"}.get)
    monkeypatch.setattr(TaskContext, "get", lambda: of_a_query)

    written = writer(WriteOptions(root=dataset.root)).write(iter([]))

    assert written.query_id == query
