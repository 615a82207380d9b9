"""The answers of a model, before they are scored."""

from __future__ import annotations

from multimodal_eval import generate
from tests.report.displays.test_displays import Elements
from tests.report.hostile import ALL


def test_the_first_answers_are_shown_as_text():
    data = [{"id": f"q{number} {ALL}", "question": ALL} for number in range(8)]
    run = generate(data, model=lambda request: "<b>bold</b>", progress=False)
    elements = Elements(run._repr_html_())
    assert elements.texts.count("<b>bold</b>") == 6
    assert "not scored yet" in " ".join(elements.texts)
    assert repr(run).startswith("8 samples, answered by")
