"""Spark sessions for this pipeline, and explanations if one cannot start."""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from odradek_spark.ingest.failures import explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIN_JAVA = 17
LOOPBACK = "127.0.0.1"
JAVA_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
"""Java 8 and older print their version as 1.8."""
UNPACKED = "environment"
"""The folder in which Spark unpacks an archive on each worker."""
QUIET = ("SQLQueryContextLogger", "py4j", "pyspark")

SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # the tables' times are UTC, whatever the machine's time zone is
    "spark.sql.session.timeZone": "UTC",
    # INT96, the default, has no statistics, so readers could not skip files
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    # decoders keep their caches from batch to batch
    "spark.python.worker.reuse": "true",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.shuffle.partitions": "8",
    # long jobs and ingest share the cores; see `in_pool`
    "spark.scheduler.mode": "FAIR",
    "spark.sql.sources.useV1SourceList": "avro,csv,json,kafka,orc,text",
}
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties")
LOCAL_JVM = f"-XX:+UseSerialGC -Xlog:disable -Xlog:all=off -Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"


UNQUOTED = re.compile(r"[\s\"'\\]")
"""Characters that would divide an option: without the archive the JVM starts, if slowly."""


class NoSpark(Exception):
    """Spark cannot run here; the message says what to do."""


def java_command() -> str:
    """The ``java`` that Spark will start.

    Raises:
        NoSpark: There is no Java.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        command = Path(home) / "bin" / "java"
        if not command.exists():
            raise NoSpark(f"JAVA_HOME is {home}, but it has no bin/java: correct it")
        return str(command)
    found = shutil.which("java")
    if found is None:
        raise NoSpark(
            f"no Java found: the pipeline needs Java {MIN_JAVA} or newer. Install it, or set JAVA_HOME"
        )
    return found


def check_java() -> int:
    """The version of Java, if Spark can use it.

    Raises:
        NoSpark: There is no Java, it does not start, or it is too old.
    """
    command = java_command()
    try:
        said = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        raise NoSpark(f"{command} cannot be started: {error.strerror}") from error
    match = JAVA_VERSION.search(said.stderr + said.stdout)
    version = int(match[1]) if match else 0
    if version < MIN_JAVA:
        raise NoSpark(
            f"{command} is Java {version or 'of unknown version'}, but the pipeline needs {MIN_JAVA} or"
            " newer. Install it, or set JAVA_HOME"
        )
    return version


def archive_path() -> Path:
    """The path of the class-data archive, which halves the start time of the JVM.

    A JVM ignores an archive of another Java or of other jars, so each pair has an archive of its own.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    spark = find_spec("pyspark")
    parts = [Path(spark.origin)] if spark is not None and spark.origin else []
    with suppress(NoSpark):  # said when it is started
        parts.append(Path(java_command()).resolve())
    named = "".join(f"{each} {each.stat().st_mtime_ns}\n" for each in parts)
    digest = hashlib.sha256(named.encode()).hexdigest()[:16]
    return cache / "odradek" / "spark" / f"classes-{digest}.jsa"


def jvm_options(archive: Path | None) -> str:
    """Options of a local driver's JVM."""
    if archive is None or UNQUOTED.search(str(archive)):
        return LOCAL_JVM
    if archive.exists():
        return f"{LOCAL_JVM} -XX:SharedArchiveFile={archive} -Xshare:auto"
    return f"{LOCAL_JVM} -XX:ArchiveClassesAtExit={archive}"


def local_session(
    app: str = "odradek",
    master: str = "local[*]",
    settings: Mapping[str, str] | None = None,
    *,
    archive: Path | None = None,
) -> SparkSession:
    """A session on this machine.

    Args:
        app: The application's name.
        master: Spark's master; ``local[*]`` unless there is a cluster.
        settings: Settings in addition to `SETTINGS`.
        archive: Class-data archive of the JVM: used if it exists, otherwise written at the end.

    Raises:
        NoSpark: Java is missing or too old, or the session does not start.
    """
    check_java()
    address = LOOPBACK if master.startswith("local") else None
    prepare_environment(address)
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    if archive is not None:
        archive.parent.mkdir(parents=True, exist_ok=True)
    builder = SparkSession.builder.appName(app).master(master)
    values = dict(SETTINGS)
    if address is not None:
        values |= {"spark.driver.bindAddress": address, "spark.driver.host": address}
    if master.startswith("local"):
        values["spark.driver.extraJavaOptions"] = jvm_options(archive)
    for key, value in (values | dict(settings or {})).items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, Py4JJavaError, OSError, RuntimeError) as error:
        raise NoSpark(f"the Spark session did not start: {explain(error).message}") from error


def is_submitted() -> bool:
    """Whether ``spark-submit`` started this program, so that the JVM runs already."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def submitted_session(app: str = "odradek", settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session of a program that ``spark-submit`` started, whose arguments choose the master."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app)
    for key, value in (dict(SETTINGS) | dict(settings or {})).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    link_environment(os.environ.get("PYSPARK_PYTHON") or session.conf.get("spark.pyspark.python", "") or "")
    return session


def link_environment(python: str) -> None:
    """Make the workers' Python of an archive valid on the driver too, which plans with it.

    Spark unpacks the archive for the workers only. A link in the driver's folder leads to the driver's own
    environment instead, until the program ends.

    Args:
        python: The workers' Python; a path in the unpacked archive is relative.
    """
    folder = Path(python).parts[0] if python else ""
    if folder != UNPACKED or Path(python).exists():
        return
    link = Path(UNPACKED)
    try:
        link.symlink_to(sys.prefix, target_is_directory=True)
    except OSError as error:
        raise NoSpark(
            f"{link.absolute()}: cannot be created: {error.strerror}. Start in another folder"
        ) from error
    atexit.register(link.unlink, missing_ok=True)


def remote_session(url: str, app: str = "odradek", settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session on a Spark Connect server.

    The server needs this package, since its workers decode and write.

    Args:
        url: ``sc://HOST:PORT`` of the server; a master instead starts a server on this machine.
        app: The application's name.
        settings: Settings in addition to those of `SETTINGS` that a session may change.

    Raises:
        NoSpark: The server does not answer, or refuses a setting that only its own start can set. For a
            master also: Java is missing or too old.
    """
    if not url.startswith("sc://"):
        check_java()
        prepare_environment(LOOPBACK if url.startswith("local") else None)
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(app).remote(url)
    given = dict(settings or {})
    for key, value in (dict(SETTINGS) | given).items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
        refused = [key for key, value in given.items() if session.conf.get(key, None) != value]
    except (PySparkException, OSError, RuntimeError) as error:
        raise NoSpark(f"no Spark Connect server at {url}: {error}") from error
    if refused:
        raise NoSpark(f"{url} refuses the setting {refused[0]}: set it when the server starts")
    return session


def in_pool(session: SparkSession, name: str) -> None:
    """Run this thread's jobs in a pool that shares Spark's cores fairly with other pools.

    A Spark Connect server follows its own configuration instead.
    """
    with suppress(AttributeError):
        session.sparkContext.setLocalProperty("spark.scheduler.pool", name)


def prepare_environment(address: str | None) -> None:
    """Set environment variables whose defaults in PySpark do not fit; the driver listens at the address."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if address is not None:
        os.environ.setdefault("SPARK_LOCAL_IP", address)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.CRITICAL)
