"""Live the whole matrix, and print it as Markdown.

PYTHONPATH=tests python -m matrix                                      # from the repository's root
PYTHONPATH=tests python -m matrix --way host --life idle --kind "java consumer"
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from matrix.clients import commands
from matrix.lives import KINDS
from matrix.place import WAYS, place
from matrix.report import page, rows, write
from matrix.run import Outcome, lived, programs
from matrix.table import LIVES, Cell, cells
from matrix.watch import OUTLETS

SIDE_BY_SIDE = 70


def waves(chosen: list[Cell], size: int) -> list[list[Cell]]:
    """The cells that are lived side by side: a mixture of ordinary ones, or all of a life that is apart."""
    ordinary = [each for each in chosen if not LIVES[each.life].apart]
    count = -(-len(ordinary) // size)
    found = [ordinary[first::count] for first in range(count)]
    apart = dict.fromkeys(each.life for each in chosen if LIVES[each.life].apart)
    return [*found, *([each for each in chosen if each.life == name] for name in apart)]


def main() -> int:
    """Live them; the exit status is 1 if a cell is wrong."""
    parser = argparse.ArgumentParser(prog="python -m matrix", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--way", action="append", choices=WAYS, help="where, by default everywhere")
    parser.add_argument("--life", action="append", choices=list(LIVES), help="a row, by default all")
    parser.add_argument("--kind", action="append", choices=[each.name for each in KINDS], help="a column")
    parser.add_argument("--side-by-side", type=int, default=SIDE_BY_SIDE, help="lives at once")
    parser.add_argument("--folder", type=Path, help="keep logs and data in this new folder")
    parser.add_argument("--rings", type=Path, help="write each ring as a line of JSON into this file")
    parser.add_argument("--write", action="store_true", help="write the tables into the page of the docs")
    given = parser.parse_args()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as temporary:
        for way in given.way or WAYS:
            chosen = cells(way, frozenset(given.life or ()), frozenset(given.kind or ()))
            folder = (given.folder or Path(temporary)) / way
            with place(way, folder) as where, programs(commands()) as clients:
                for wave in waves(chosen, given.side_by_side):
                    print(f"{way}: {len(wave)} lives, {wave[0].life} ...", file=sys.stderr, flush=True)
                    outcomes += lived(where, wave, clients)
            if where.watch.misses:
                print(f"{where.watch.misses} questions without an answer", file=sys.stderr)
    if given.rings:
        given.rings.write_text("".join(f"{json.dumps(each)}\n" for each in rows(outcomes)))
    if given.write:
        write(outcomes)
    print("\n".join(page(outcomes)))
    return any(not each.is_right(outlet) for each in outcomes for outlet in OUTLETS)


if __name__ == "__main__":
    sys.exit(main())
