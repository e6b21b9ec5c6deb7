"""The master of a session: the address of the driver, and errors in one line."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys

import pytest

from odradek_spark.ingest import session
from odradek_spark.ingest.masters import MasterError, driver_address
from odradek_spark.ingest.session import NoSpark, local_session


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local-cluster[2,1,1024]"])
def test_a_session_on_this_machine_listens_on_loopback(master: str) -> None:
    assert driver_address(master) == "127.0.0.1"


@pytest.mark.parametrize("master", ["yarn", "k8s://https://cluster:443"])
def test_other_clusters_are_left_to_spark(master: str) -> None:
    assert driver_address(master) is None


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("sparc://h:1", r"'sparc://h:1' is no master of Spark: expected local\[CORES\], spark://HOST:PORT"),
        ("", "'' is no master of Spark"),
        ("spark://h", "spark://h: expected spark://HOST:PORT"),
        ("spark://127.0.0.1:1", "no Spark master at spark://127.0.0.1:1: 127.0.0.1:1: .*refused"),
    ],
)
def test_a_wrong_master_is_told_in_one_line(
    master: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "check_java", lambda: 17)

    with pytest.raises(MasterError, match=message):
        driver_address(master)
    with pytest.raises(NoSpark, match=message) as told:
        local_session(master=master)

    assert "\n" not in str(told.value)


def test_the_first_master_that_answers_counts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        assert driver_address(f"spark://127.0.0.1:1,127.0.0.1:{port}") == "127.0.0.1"


NAMESPACE = """
set -e
ip link set lo up
ip link add here type veth peer name there
ip addr add 10.97.0.1/24 dev here
ip link set here up
ip link set there up
ip addr add 10.98.0.1/24 dev lo
exec "$0" -c '
import socket
from odradek_spark.ingest.masters import driver_address
with socket.create_server(("10.98.0.1", 0)) as master:
    print(driver_address(f"spark://10.98.0.1:{master.getsockname()[1]}"))
with socket.create_server(("10.97.0.1", 0)) as master:
    print(driver_address(f"spark://10.97.0.1:{master.getsockname()[1]}"))
'
"""


@pytest.mark.slow
def test_the_driver_listens_where_the_master_sees_it() -> None:
    """In a network namespace of its own, with two networks."""
    unshare = shutil.which("unshare")
    if unshare is None or shutil.which("ip") is None:
        pytest.skip("needs unshare and ip")
    if subprocess.run([unshare, "-rn", "true"], capture_output=True, check=False).returncode:
        pytest.skip("network namespaces are not allowed")

    done = subprocess.run(
        [unshare, "-rn", "bash", "-c", NAMESPACE, sys.executable],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.stdout.split() == ["10.98.0.1", "10.97.0.1"], done.stderr
