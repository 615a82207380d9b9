"""Pages in the browser, and small runs for reports."""

from __future__ import annotations

import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.sample import Sample
from tests.report.visits import Visit


@pytest.fixture
def visit(chromium):
    """Opens addresses, each in a separate context. No page may open a dialog or send a request to another server."""
    visits: list[Visit] = []

    def open_page(address: str, **options) -> Visit:
        visits.append(Visit(chromium, address, **options))
        return visits[-1]

    yield open_page
    for visit in visits:
        visit.context.close()
        assert (visit.dialogs, visit.elsewhere) == ([], [])


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Two runs of thirty samples in three kinds. The second system is worse and fails once."""
    folder = tmp_path_factory.mktemp("runs")
    config = {
        "task": "mine",
        "tasks": {"mine": {"metrics": ["rouge_l", "exact_match"], "weights": {"rouge_l": 0.75, "exact_match": 0.25}}},
    }
    evaluated = []
    for system in ("good", "bad"):
        samples = []
        for number in range(30):
            kind = ("dog", "cat", "cow")[number % 3]
            right = f"a red {kind} number {number} runs"
            wrong = number % (4 if system == "good" else 2) == 1
            answer = f"the {kind} sleeps" if wrong else right
            error = "timed out" if system == "bad" and number == 6 else None
            metadata = {"kind": kind, "number": number}
            samples.append(
                Sample(id=f"s{number}", references=[right], generated_answer=answer, error=error, metadata=metadata)
            )
        evaluated.append(evaluate(samples, config=config, output=folder / system))
    return evaluated
