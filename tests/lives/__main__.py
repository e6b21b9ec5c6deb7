"""Live many seeds, and keep those that fail as tests.

Usage, from the folder above: ``python -m lives [--first 200] [--seeds 100000]``
"""

from __future__ import annotations

import argparse
import gc
import sys
import time

from lives.life import lived
from lives.seeds import ORDINARY, keep

PROGRESS_EVERY = 1_000


def main() -> int:
    """Live them; the exit status is 1 if one has failed."""
    parser = argparse.ArgumentParser(prog="python -m lives", description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=len(ORDINARY), help="the first seed")
    parser.add_argument("--seeds", type=int, default=1_000, help="how many")
    options = parser.parse_args()
    gc.freeze()  # what is loaded is no life's
    failed, begun_s = 0, time.process_time()
    for number, seed in enumerate(range(options.first, options.first + options.seeds), 1):
        if failures := lived(seed):
            failed += 1
            keep(seed)
            print(f"seed {seed}", *failures, sep="\n  ", flush=True)
        if not number % PROGRESS_EVERY:
            print(
                f"{number} lives, {failed} failed, {time.process_time() - begun_s:.0f} s of CPU", flush=True
            )
    print(f"{options.seeds} lives, {failed} failed")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
