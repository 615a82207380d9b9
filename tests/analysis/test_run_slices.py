"""Slices by columns with few values, in a run of several parts with unscored samples."""

from __future__ import annotations

import pytest

from multimodal_eval import evaluate
from multimodal_eval.analysis.run_slices import slices_of
from multimodal_eval.core.sample import Sample
from tests.parts import set_part_size

FIGURES = ("value", "stderr", "low", "high", "n_scored", "n_total")


@pytest.fixture
def samples():
    """Twenty samples of two kinds, one of which has no kind, and three that failed."""
    return [
        Sample(
            f"s{number}",
            references=["a red dog runs on the beach"],
            generated_answer="a red dog sleeps on the beach" if number % 4 else "a cat runs",
            error="boom" if number in (2, 9, 10) else None,
            metadata={
                "number": number,
                **({} if number == 5 else {"kind": ["dog", "cat"][number % 2]}),
                **({"late": [["x"], None, ["y"]][number % 3]} if number > 12 else {}),
            },
            task="a" if number < 7 else None,
        )
        for number in range(20)
    ]


def test_slices_of_several_parts_equal_those_of_a_run_with_by(samples, tmp_path, monkeypatch):
    set_part_size(monkeypatch, 6)
    settings = {"metrics": ["bleu", "rouge_l"], "progress": False}  # bleu is a corpus score with statistics
    run = evaluate(samples, output=tmp_path / "run", **settings)
    assert run.info.parts == [6, 6, 6, 2]
    asked = evaluate(samples, output=tmp_path / "asked", by=["kind"], **settings)
    computed = {slices.column: slices for slices in slices_of(run)}
    kind, stored = computed["kind"], asked.outcome.slices["kind"]
    assert kind.counts == {value: part.n for value, part in stored.items()} == {"cat": 9, "dog": 10, "(none)": 1}
    for value, part in stored.items():
        for name, entry in part.metrics.items():
            for figure in FIGURES:
                assert getattr(kind.values[value][name], figure) == getattr(entry, figure), (value, name, figure)


def test_columns_are_found_in_any_part(samples, tmp_path, monkeypatch):
    set_part_size(monkeypatch, 6)
    run = evaluate(samples, metrics=["rouge_l"], output=tmp_path / "run", progress=False)
    computed = {slices.column: slices.counts for slices in slices_of(run)}
    # The numbers are all different. Samples 13 to 19 have the column `late`: a list with x for 15 and 18, null for 13,
    # 16 and 19, a list with y for 14 and 17. A field of the sample such as `task` counts like metadata.
    assert "number" not in computed
    assert computed["late"] == {"['x']": 2, "['y']": 2, "(none)": 16}
    assert computed["task"] == {"a": 7, "(none)": 13}
