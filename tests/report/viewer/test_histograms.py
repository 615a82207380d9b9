"""Histograms of scores: their counts equal those of NumPy, and odd values have a place."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.report.viewer.histograms import BINS, Histogram, Histograms, bins_of
from multimodal_eval.report.viewer.runs import RunsFolder
from multimodal_eval.report.viewer.sample_query import SampleQuery
from multimodal_eval.report.viewer.store import Store
from tests.report.viewer.viewed import COUNT, make_runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counted") / "runs"
    make_runs(folder)
    return folder


@pytest.fixture(scope="module")
def histograms(folder: Path) -> Histograms:
    return Histograms(Store(folder.resolve()))


def scores(folder: Path, metric: str) -> np.ndarray:
    column = RunFolder(folder / "alba").read_part("scores", 0)[metric]
    return np.array([math.nan if value is None else value for value in column.to_pylist()])


@pytest.mark.parametrize("metric", ["bleu", "rouge_l", "cider_d", "bleu.bleu_1"])
def test_the_counts_equal_those_of_numpy(folder: Path, histograms: Histograms, metric: str):
    run = RunsFolder(folder).open("alba")
    histogram = histograms.of(run, [metric])[metric]
    values = scores(folder, metric)
    scored = values[~np.isnan(values)]
    assert list(histogram.counts) == np.histogram(scored, histogram.edges)[0].tolist()
    assert (histogram.scored, histogram.unscored) == (len(scored), COUNT - len(scored))
    assert histogram.edges[0] <= scored.min() <= scored.max() <= histogram.edges[-1]
    assert histogram.matching is None


def test_a_bounded_metric_is_shown_in_its_bounds(folder: Path, histograms: Histograms):
    histogram = histograms.of(RunsFolder(folder).open("alba"), ["rouge_l"])["rouge_l"]
    assert (histogram.edges[0], histogram.edges[-1], len(histogram.counts)) == (0, 1, BINS)
    assert histogram.edges[12] == 0.3  # not 0.30000000000000004


def test_a_query_is_counted_beside_the_totals(folder: Path, histograms: Histograms):
    run = RunsFolder(folder).open("alba")
    values, other = scores(folder, "bleu"), scores(folder, "rouge_l")
    query = SampleQuery(text="blue", ranges=(("rouge_l", 0.6, None),))
    histogram = histograms.of(run, ["bleu"], query)["bleu"]
    texts = RunFolder(folder / "alba").read_part("samples", 0)["generated_answer"].to_pylist()
    matches = np.array(["blue" in (text or "") for text in texts]) & (np.nan_to_num(other, nan=-1) >= 0.6)
    assert matches.sum() > 10
    assert histogram.matching == tuple(np.histogram(values[matches], histogram.edges)[0].tolist())
    assert histogram.counts == histograms.of(run, ["bleu"])["bleu"].counts
    assert histogram.matched == matches.sum()


def changed(folder: Path, target: Path, values: list[float | None]) -> Histogram | None:
    """The histogram of rouge_l after its first values are replaced."""
    done, path = RunFolder(folder / "alba"), target / "runs" / "changed"
    copy = RunFolder.create(path, done.read_info())
    copy.write_part("samples", 0, done.read_part("samples", 0))
    table = done.read_part("scores", 0)
    at = table.schema.get_field_index("rouge_l")
    column = [*values, *[None] * (COUNT - len(values))]
    copy.write_part("scores", 0, table.set_column(at, "rouge_l", pa.array(column, pa.float64())))
    copy.write_results(done.read_results())
    copy.write_info(done.read_info())
    run = RunsFolder(path.parent).open("changed")
    return Histograms(Store(path.parent.resolve())).of(run, ["rouge_l"]).get("rouge_l")


def test_infinities_are_in_the_bins_at_the_ends_and_nan_is_unscored(folder: Path, tmp_path: Path):
    histogram = changed(folder, tmp_path, [-math.inf, 0.0, 0.5, 1.0, math.inf, math.nan])
    assert histogram is not None
    assert (histogram.counts[0], histogram.counts[-1]) == (2, 2)
    assert (histogram.scored, histogram.unscored) == (5, COUNT - 5)


def test_equal_values_are_in_one_bin_inside_the_histogram(folder: Path, tmp_path: Path):
    histogram = changed(folder, tmp_path, [0.3] * 7)
    assert histogram is not None
    assert sorted(histogram.counts)[-2:] == [0, 7]
    assert 0 < histogram.counts.index(7) < len(histogram.counts) - 1


@pytest.mark.parametrize("values", [[], [math.nan], [math.inf, -math.inf]])
def test_without_finite_values_there_is_no_histogram(folder: Path, tmp_path: Path, values: list[float | None]):
    assert changed(folder, tmp_path, values) is None


def test_a_run_without_parts_and_an_unknown_metric_have_no_histogram(folder: Path, histograms: Histograms):
    assert histograms.of(RunsFolder(folder).open("alba"), ["nothing", "row", "bleu:status"]) == {}


def test_values_over_orders_of_magnitude_have_a_logarithmic_scale():
    bins = bins_of(1.5, 40_000, (0, None))
    ratios = [after / before for before, after in pairwise(bins.edges)]
    assert bins.logarithmic
    assert max(ratios) / min(ratios) < 1.01


finite = st.floats(allow_nan=False, allow_infinity=False)
limits = st.none() | finite


@given(finite, finite, limits, limits)
def test_bins_cover_any_values_with_ascending_edges(first, second, least, most):
    low, high = min(first, second), max(first, second)
    bins = bins_of(low, high, (least, most))
    assert all(before < after for before, after in pairwise(bins.edges))
    assert 1 <= len(bins.edges) - 1 <= BINS + 2
    if not bins.logarithmic:
        rounding = 1e-9 * max(abs(low), abs(high))
        assert bins.edges[0] <= low + rounding
        assert bins.edges[-1] >= high - rounding


def test_the_bars_of_a_histogram_are_drawn_to_scale():
    histogram = Histogram("x", (0.0, 1.0, 2.0, 3.0), (4, 0, 1000), 0)
    # The smallest visible height is a fortieth: 100 - 2.5. An empty bin has no bar.
    assert histogram.bars(histogram.counts) == "M0 100V97.5H1V100ZM2 100V0H3V100Z"
    assert re.fullmatch(r"(M\d+ 100V[\d.]+H\d+V100Z)+", histogram.bars((1, 2, 3)))
    assert histogram.fullest == (2.0, 3.0)
