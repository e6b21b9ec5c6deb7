"""Fuzz one target or all, with atheris.

Usage, from the folder above: ``python -m fuzz [TARGET ...] [--seconds 10] [--runs N] [--file FILE]``
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TARGETS = (
    "codec",
    "record_batch",
    "decompressor",
    "payload",
    "sasl",
    "metadata",
    "segment",
    "proxy_header",
    "rewriting",
)
CORPUS = Path(__file__).parent / "corpus"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek-fuzz"
INPUT_MAX_BYTES = 8_192
INPUT_TIMEOUT_S = 10
INSTRUMENTED_MAX_BYTES = 30_000
"""Of bytecode. To instrument a function takes time by the square of its size: ten seconds for the largest."""


def fuzz(target: str, arguments: argparse.Namespace) -> None:
    """Fuzz one target in this process; does not return."""
    import atheris

    logging.disable()  # a line for each damaged input
    with atheris.instrument_imports(include=["odradek"], enable_loader_override=False):
        module = importlib.import_module(f"fuzz.targets.{target}")
        codegen = importlib.import_module("odradek.wire.codegen")
    compiled = codegen.Source.function

    def instrumented(source: Any, name: str, title: str) -> Any:
        """Compiled readers are not imported, so they are instrumented one by one."""
        function = compiled(source, name, title)
        is_short = len(function.__code__.co_code) <= INSTRUMENTED_MAX_BYTES
        return atheris.instrument_func(function) if title.endswith("reader") and is_short else function

    codegen.Source.function = instrumented
    cache = CACHE / target
    cache.mkdir(parents=True, exist_ok=True)
    for seed in module.seeds():
        module.check(seed)  # compiles what reads it, which is no fault of the first input that needs it
        (cache / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    flags = [
        f"-max_len={INPUT_MAX_BYTES}",
        f"-timeout={INPUT_TIMEOUT_S}",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
        f"-artifact_prefix={CACHE}/{target}-",
        f"-max_total_time={arguments.seconds}",
        *([f"-runs={arguments.runs}"] if arguments.runs else []),
    ]
    folders = [str(folder) for folder in (cache, CORPUS / target) if folder.exists()]
    atheris.Setup([sys.argv[0], *flags, *folders], module.check)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "targets", nargs="*", choices=(*TARGETS, []), metavar="TARGET", help=", ".join(TARGETS)
    )
    parser.add_argument("--seconds", type=int, default=10, help="for each target")
    parser.add_argument("--runs", type=int, help="end after this many inputs")
    parser.add_argument("--file", type=Path, help="only check this input of the target")
    arguments = parser.parse_args()
    targets = arguments.targets or TARGETS
    if unknown := set(targets) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    if arguments.file is not None:
        importlib.import_module(f"fuzz.targets.{targets[0]}").check(arguments.file.read_bytes())
        return 0
    if len(targets) == 1:
        fuzz(targets[0], arguments)
    given = [f"--seconds={arguments.seconds}", *([f"--runs={arguments.runs}"] if arguments.runs else [])]
    failed = [
        target
        for target in targets
        if subprocess.run([sys.executable, "-m", "fuzz", target, *given]).returncode
    ]
    if failed:
        print(f"findings: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
