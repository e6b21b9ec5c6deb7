"""``reference/presets.md`` is generated: what each preset asks for, feeds and costs."""

from __future__ import annotations

from contrib.docs import presets

from support.reference_page import page


def test_the_page_is_generated_from_presets_alerts_and_recorded_pushes() -> None:
    assert page("reference/presets.md") == presets.page(), "run python -m contrib.docs.presets"
