"""A notebook: runs a host and two clients that push, loads their metrics into tables, and queries these.

Run it: ``python examples/06_ask_the_tables.py`` (needs ``odradek[spark]`` and Java 17), or cell
by cell in an editor that supports ``# %%``. Takes half a minute, most of it for the start of Spark.
"""

# %% A host on a free port, and two clients that push every second.
from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, Producer
from pyspark.sql import SparkSession

import odradek.testing
from odradek_spark.views import register_views
from odradek_tables.query import questions
from odradek_tables.query.questions import Window
from odradek_tables.query.reader import Reader

folder = Path(tempfile.mkdtemp(prefix="odradek-example-"))
dataset = str(folder / "tables")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = SparkSession.builder.master("local[2]").getOrCreate()
with odradek.testing.host(telemetry_durability="log") as host:
    host.subscribe("*", interval_ms=1000)
    settings = {"bootstrap.servers": host.bootstrap}
    producer = Producer(settings | {"client.id": "orders"})
    consumer = Consumer(settings | {"client.id": "billing", "group.id": "billing"})
    consumer.subscribe(["orders"])
    until = time.monotonic() + 5
    while time.monotonic() < until:
        producer.produce("orders", b"one more")
        producer.poll(0)
        consumer.poll(0.05)
    producer.flush(5)
    producer.close()
    consumer.close()

    # %% The four lines: everything that is in the telemetry topic now, into the tables.
    topic = {"kafka.bootstrap.servers": host.bootstrap, "subscribe": "__client_telemetry"}
    raw = spark.readStream.format("odradek").options(**topic, startingOffsets="earliest").load()
    query = raw.writeStream.format("odradek").option("path", dataset).trigger(availableNow=True)
    query.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()

# %% Query the views with Spark.
register_views(spark, dataset)
spark.sql("SELECT client_id, software_name, pushes, points FROM v_clients ORDER BY client_id").show()

# %% Query them with DuckDB, without Spark. The results are Arrow tables, which convert to pandas.
reader = Reader(dataset)
slowest = questions.top(reader, "producer.node.request.latency.avg", Window())
print(slowest.to_pandas().to_string(index=False))
names = reader.ask("SELECT count(DISTINCT name) AS metrics FROM v_points WHERE client_id = 'billing'")
print(f"billing reports {names['metrics'][0]} metrics")
spark.stop()
