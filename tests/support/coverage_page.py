"""The generator of the coverage page. ``contrib`` is not installed, so it is found from the repository's
root.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from contrib.docs.protocol_coverage import Row, load_ledger, sections  # noqa: E402  needs the line above

__all__ = ["ROOT", "Row", "load_ledger", "sections"]
