"""Python processes of Spark start with PySpark's bytecode, wherever Spark puts its zips."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

from odradek_spark.cli.session import WORKERS, use_installed_pyspark

HOME = Path(pyspark.__file__).parent
ZIPS = [str(each) for each in sorted((HOME / "python/lib").glob("*.zip"))]


def said(code: str, *paths: str | Path, options: tuple[str, ...] = ()) -> str:
    """The output of a program whose path begins as Spark's processes have it."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_pyspark_is_taken_from_where_it_is_installed() -> None:
    code = "import py4j, pyspark; print(pyspark.__file__, py4j.__file__)"

    assert all(each in said(code, *ZIPS) for each in ZIPS), "else Spark needs no help any more"
    assert ".zip" not in said(code, *ZIPS, WORKERS)


def test_the_zip_of_another_spark_is_kept(tmp_path: Path) -> None:
    other = tmp_path / "pyspark/python/lib/pyspark.zip"
    other.parent.mkdir(parents=True)
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("pyspark/__init__.py", "__version__ = 'another'")

    assert said("import pyspark; print(pyspark.__version__)", other, WORKERS) == "another"


def test_the_zip_is_kept_where_nothing_is_installed() -> None:
    """As on a node that has Spark alone."""
    code = f"import sys; sys.path.insert(0, {str(WORKERS)!r}); import sitecustomize, pyspark; print(pyspark)"

    assert ZIPS[-1] in said(code, *ZIPS, options=("-S",))


def test_the_sitecustomize_of_the_environment_runs_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.here = True")

    assert said("print(here)", WORKERS, tmp_path) == "True"


def test_the_path_is_extended_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "mine")
    use_installed_pyspark()
    use_installed_pyspark()

    assert os.environ["PYTHONPATH"] == f"{WORKERS}{os.pathsep}mine"
