"""``python -m odradek_spark.submit_args``: what ``spark-submit`` needs to run ``odradek spark``.

::

    spark-submit --master spark://HOST:7077 $(python -m odradek_spark.submit_args) ingest --dataset ...

Where the workers have no Python with this package, give them one: pack a virtual environment
(``venv-pack -o environment.tar.gz``) and name it with ``--archive environment.tar.gz``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from odradek_spark.ingest.session import SETTINGS

PROGRAM = Path(__file__).with_name("__main__.py")
UNPACKED = "environment"
"""The folder in which Spark unpacks the archive on each worker."""


def submit_args(archive: str | None = None) -> list[str]:
    """The arguments, program included; those of the program follow."""
    found = [f"{key}={value}" for key, value in SETTINGS.items()]
    if archive is None:
        return [*confs([*found, f"spark.pyspark.python={sys.executable}"]), str(PROGRAM)]
    unpacked = [
        f"spark.pyspark.driver.python={sys.executable}",
        f"spark.pyspark.python=./{UNPACKED}/bin/python",
    ]
    return ["--archives", f"{archive}#{UNPACKED}", *confs([*found, *unpacked]), str(PROGRAM)]


def confs(settings: Sequence[str]) -> list[str]:
    return [argument for setting in settings for argument in ("--conf", setting)]


def main() -> None:
    """Print them on one line."""
    parser = argparse.ArgumentParser(prog="python -m odradek_spark.submit_args")
    parser.add_argument("--archive", help="a packed virtual environment with odradek[spark] in it")
    print(" ".join(submit_args(parser.parse_args().archive)))


if __name__ == "__main__":
    main()
