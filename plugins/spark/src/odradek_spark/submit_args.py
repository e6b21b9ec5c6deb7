"""``python -m odradek_spark.submit_args``: the arguments of ``spark-submit`` that run ``odradek spark``.

::

    spark-submit --master spark://HOST:7077 $(python -m odradek_spark.submit_args) ingest --dataset ...

If the workers have no Python with this package, ship one: pack a virtual environment
(``venv-pack -o environment.tar.gz``) and pass it with ``--archive environment.tar.gz``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from odradek_spark.ingest.session import SETTINGS, UNPACKED

PROGRAM = Path(__file__).with_name("__main__.py")


def submit_args(archive: str | None = None) -> list[str]:
    """The arguments up to and including the program; the program's own arguments follow them."""
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
    """Print the arguments on one line."""
    parser = argparse.ArgumentParser(prog="python -m odradek_spark.submit_args")
    parser.add_argument("--archive", help="a packed virtual environment with odradek[spark] in it")
    print(" ".join(submit_args(parser.parse_args().archive)))


if __name__ == "__main__":
    main()
