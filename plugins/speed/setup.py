"""Builds the C function. Without a compiler the distribution is built and installed without it."""

import os
from pathlib import Path

from setuptools import Extension, setup

HOST = Path(__file__).resolve().parents[2] / "host/src/odradek/__init__.py"
UNPACKED = Path(__file__).with_name("PKG-INFO")
"""What an sdist has in place of the host."""


def version() -> str:
    """The version of the host, which all distributions have."""
    source, start = (UNPACKED, "Version: ") if UNPACKED.exists() else (HOST, "__version__ = ")
    lines = source.read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix(start).strip('"') for line in lines if line.startswith(start))


setup(
    version=version(),
    ext_modules=[
        Extension(
            "odradek_speed.records",
            ["src/odradek_speed/records.c"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=["-g0"] if os.name == "posix" else [],  # else it has the path of the build
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
