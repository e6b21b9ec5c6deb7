"""JVMs that start in a third of the time: a class-data archive, and no optimizing compiler."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from odradek_spark.cli.session import LOOPBACK, SETTINGS, use_installed_pyspark

VARIABLE = "JDK_JAVA_OPTIONS"
"""The environment variable from which a JVM takes options."""


def archive_path() -> Path:
    """The archive, which a JVM ignores if it is of another Java or of other jars: each pair has its own."""
    java = shutil.which("java")
    parts = [Path(pyspark.__file__), *([Path(java).resolve()] if java else [])]
    named = "".join(f"{each} {each.stat().st_mtime_ns}\n" for each in parts)
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return cache / "odradek" / "spark" / f"classes-{hashlib.sha256(named.encode()).hexdigest()[:16]}.jsa"


def quick_start() -> str:
    """The options; the JVM writes the archive at its end if there is none."""
    archive = archive_path()
    classes = f"-XX:SharedArchiveFile={archive} -Xshare:auto"
    if not archive.exists():
        classes = f"-XX:ArchiveClassesAtExit={archive}"
    return f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:disable -Xlog:all=off {classes}"


def local_session(name: str, master: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session on this machine."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    use_installed_pyspark()
    os.environ.setdefault(VARIABLE, quick_start())
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in ({**SETTINGS, **LOOPBACK, **(settings or {})}).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
