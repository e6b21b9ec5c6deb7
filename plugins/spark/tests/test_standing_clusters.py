"""Running clusters, as the how-to names them: a standalone one, and a Spark Connect server."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tarfile
import venv
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest
from contrib.capture.ports import answers, free_port
from ingested import every, is_exactly, until
from quick_session import VARIABLE, quick_start
from spark_topics import TOPIC, fill, records

import odradek.testing
import odradek_spark.__main__

pytestmark = [pytest.mark.spark, pytest.mark.timeout(400)]
SPARK_HOME = Path(pyspark.__file__).parent
PATIENCE_S = 100
ENVIRONMENT = {
    VARIABLE: quick_start(),
    "SPARK_HOME": str(SPARK_HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_NO_DAEMONIZE": "1",
    "PYSPARK_PYTHON": sys.executable,
    "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
}


@contextmanager
def standing(folder: Path, name: str, *command: str) -> Iterator[Path]:
    """A process and its output; at the end it and its children are gone."""
    said = folder / f"{name}.log"
    with said.open("w") as out:
        process = subprocess.Popen(
            command,
            stdout=out,
            stderr=out,
            cwd=folder,
            env=os.environ | ENVIRONMENT,
            start_new_session=True,
        )
        try:
            yield said
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the clusters; the applications' files are in ``work``."""
    return tmp_path_factory.mktemp("clusters")


@pytest.fixture(scope="module")
def master(folder: Path) -> Iterator[str]:
    """A master and a worker, each in its own process."""
    program = str(SPARK_HOME / "bin" / "spark-class")
    where = ("--host", "127.0.0.1", "--webui-port", "0")
    with ExitStack() as cluster:
        said = cluster.enter_context(
            standing(
                folder, "master", program, "org.apache.spark.deploy.master.Master", *where, "--port", "0"
            )
        )
        until(lambda: "spark://" in said.read_text(), PATIENCE_S)
        url = re.findall(r"spark://[\d.:]+\d", said.read_text())[0]
        size = ("--cores", "2", "--memory", "1g", "--work-dir", str(folder / "work"))
        cluster.enter_context(
            standing(folder, "worker", program, "org.apache.spark.deploy.worker.Worker", *where, *size, url)
        )
        yield url


@pytest.fixture(scope="module")
def remote(folder: Path) -> Iterator[str]:
    """A Spark Connect server, started by Spark's own script."""
    port = free_port()
    script = str(SPARK_HOME / "sbin" / "start-connect-server.sh")
    confs = (f"spark.connect.grpc.binding.port={port}", "spark.ui.enabled=false")
    options = [part for each in confs for part in ("--conf", each)]
    with standing(folder, "connect", "bash", script, "--master", "local[2]", *options):
        until(lambda: answers(port), PATIENCE_S)
        yield f"sc://127.0.0.1:{port}"


def ingested_by(command: str, folder: Path, **more: str) -> str:
    """The output of a command of the how-to, run by a shell; its dataset is ``tables``."""
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, 2)
        fill(host.bootstrap, records(20, partitions=2))
        variables = {**os.environ, **ENVIRONMENT, "BOOTSTRAP": host.bootstrap, "TOPIC": TOPIC, **more}
        done = subprocess.run(
            ["bash", "-c", command],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=folder,
            env=variables,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return done.stdout


PYTHON = shlex.quote(sys.executable)
PROGRAM = shlex.quote(str(odradek_spark.__main__.__file__))
SUBMIT = shlex.quote(str(SPARK_HOME / "bin" / "spark-submit"))
INGEST = 'ingest --once --bootstrap-server "$BOOTSTRAP" --topic "$TOPIC" --dataset tables'


def test_a_standalone_cluster_ingests(master: str, tmp_path: Path) -> None:
    command = f'{SUBMIT} --master "$MASTER" {PROGRAM} {INGEST}'

    printed = ingested_by(command, tmp_path, MASTER=master)

    assert "ingested 20 pushes, 60 points, 0 dead letters" in printed
    assert is_exactly(tmp_path / "tables", every(20, 2))


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A small archive: a virtual environment that finds the packages of this one."""
    venv.create(tmp_path / "packed", symlinks=True)
    (packages,) = (tmp_path / "packed").glob("lib/python*/site-packages")
    (packages / "these.pth").write_text("\n".join(each for each in sys.path if each))
    archive = tmp_path / "packed.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(tmp_path / "packed", ".")
    return archive


def test_workers_run_the_python_of_an_archive(
    master: str, environment: Path, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "environment").symlink_to(sys.prefix)  # of the driver, which plans with the workers' Python
    archive = f"--archives {environment}#environment --conf spark.pyspark.python=./environment/bin/python"
    python = f"--conf spark.pyspark.driver.python={PYTHON}"
    command = f'unset PYSPARK_PYTHON; {SUBMIT} --master "$MASTER" {archive} {python} {PROGRAM} {INGEST}'

    printed = ingested_by(command, tmp_path, MASTER=master)

    assert "ingested 20 pushes, 60 points, 0 dead letters" in printed
    assert is_exactly(tmp_path / "tables", every(20, 2))
    assert list((folder / "work").glob("*/*/environment"))


def test_a_standalone_cluster_runs_the_driver_of_no_python_program() -> None:
    """Spark has no cluster mode for Python here, which the how-to says; it looks for no master before."""
    submit, program = str(SPARK_HOME / "bin" / "spark-submit"), str(odradek_spark.__main__.__file__)

    done = subprocess.run(
        [submit, "--master", "spark://127.0.0.1:1", "--deploy-mode", "cluster", program, "ingest"],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | ENVIRONMENT,
        check=False,
    )

    assert done.returncode != 0
    assert (
        "Cluster deploy mode is currently not supported for python applications" in done.stdout + done.stderr
    )


def test_a_connect_server_ingests(remote: str, tmp_path: Path) -> None:
    printed = ingested_by(
        f'{PYTHON} -m odradek spark {INGEST} --conf spark.remote="$REMOTE"', tmp_path, REMOTE=remote
    )

    assert "ingested 20 pushes, 60 points, 0 dead letters" in printed
    assert is_exactly(tmp_path / "tables", every(20, 2))
