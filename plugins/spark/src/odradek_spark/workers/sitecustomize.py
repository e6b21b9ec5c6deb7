"""Python imports this when it starts: Spark's processes take PySpark from where it is installed.

Spark puts the ``pyspark.zip`` of the installed package first on their path. Its modules have no bytecode, so
each process compiles them again: three quarters of the CPU of its start, and a run starts seven to fourteen.
"""

import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

here = Path(__file__).parent
others = [each for each in sys.path if Path(each) != here]
without_zips = [each for each in others if not Path(each).match("pyspark/python/lib/*.zip")]
pyspark, py4j = (PathFinder.find_spec(name, without_zips) for name in ("pyspark", "py4j"))
if pyspark is not None and pyspark.origin is not None and py4j is not None:
    installed = Path(pyspark.origin).parent
    sys.path[:] = [each for each in others if each in without_zips or installed not in Path(each).parents]
next_one = PathFinder.find_spec("sitecustomize", others)
if next_one is not None and next_one.loader is not None:
    next_one.loader.exec_module(module_from_spec(next_one))
