"""odradek-speed is built where there is a C compiler, and installed without its function elsewhere."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from odradek.wire import record_scan
from odradek.wire.limits import INT64_MAX
from odradek.wire.record import Record
from odradek.wire.record_batch import HEADER_BYTES, build_batch
from odradek.wire.record_scan import walk_in_python

ROOT = Path(__file__).parents[2]
EXTENSION = "odradek_speed/records.abi3.so"
VERSION_FILE = "host/src/odradek/__init__.py"


def files_of_the_wheel(folder: Path, **environment: str) -> set[str]:
    """Build a copy of the distribution, whose wheel is unpacked into ``folder``, and name its files."""
    source = folder / "checkout" / "plugins" / "speed"
    shutil.copytree(ROOT / "plugins" / "speed", source, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    version_file = folder / "checkout" / VERSION_FILE
    version_file.parent.mkdir(parents=True)
    shutil.copy(ROOT / VERSION_FILE, version_file)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", "dist"]
    subprocess.run([*command, str(source)], cwd=folder, env=os.environ | environment, check=True)
    (path,) = (folder / "dist").iterdir()
    with ZipFile(path) as wheel:
        wheel.extractall(folder)
        return set(wheel.namelist())


@pytest.mark.ci
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_one_wheel_has_the_function_for_all_versions_of_python(tmp_path: Path) -> None:
    files = files_of_the_wheel(tmp_path)
    body = build_batch([Record(None, b"v", 5, (("h", None),))])[HEADER_BYTES:]
    call = f"walk_records({body!r}, 1, 5, {INT64_MAX})"
    program = f"from odradek_speed.records import walk_records; print({call})"

    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=True,
    )  # fmt: skip

    assert EXTENSION in files
    assert done.stdout.strip() == str(walk_in_python(body, 1, 5, INT64_MAX))


@pytest.mark.ci
def test_without_a_compiler_the_wheel_lacks_the_function(tmp_path: Path) -> None:
    files = files_of_the_wheel(tmp_path, CC="/bin/false")

    assert EXTENSION not in files
    assert "odradek_speed/py.typed" in files


def test_without_the_function_the_host_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "odradek_speed.records", None)

    found = runpy.run_path(record_scan.__file__)

    assert found["walk_records"] is found["walk_in_python"]
