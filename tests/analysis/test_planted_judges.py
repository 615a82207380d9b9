"""What is planted in a judge behind a server is found again, within the intervals."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from multimodal_eval import JudgeConfig, JudgeModel, evaluate
from multimodal_eval.analysis.judges import judges_of
from multimodal_eval.stats.intervals import interval
from multimodal_eval.stats.length_control import length_controlled, length_effect
from tests.judges.server import Leanings, judge_server

PAIRS = 500


def pairs():
    """Pairs whose differences of length are normal, with a standard deviation of 100 characters."""
    rows = []
    for number in range(PAIRS):
        difference = round(100 * NormalDist().inv_cdf((number + 0.5) / PAIRS))
        answer, other = f"a{number} ", f"b{number} "
        texts = (answer + "x" * max(difference, 0), other + "y" * max(-difference, 0))
        rows.append({"id": str(number), "generated_answer": texts[0], "baseline": texts[1]})
    return rows


def judged(leanings, monkeypatch, tmp_path, **settings):
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    with judge_server(leanings) as server:
        models = [JudgeModel(model="openai:tiny", base_url=server.url)]
        config = JudgeConfig(name="good", form="pairwise", models=models, use_probe=False, **settings)
        run = evaluate(pairs(), metrics=[config], progress=False)
        assert server.requests == 2 * PAIRS
    return judges_of(run).metrics["good"]


def test_flips_and_the_preference_for_a_place(monkeypatch, tmp_path):
    flips = judged(Leanings(flips=0.2, prefers_first=0.8), monkeypatch, tmp_path).flips
    assert flips.flips.low < 0.2 < flips.flips.high
    # 20% of the pairs give both verdicts to a place, in 80% of them the first; the others give it half of theirs.
    assert flips.first.low < 0.2 * 0.8 + 0.8 * 0.5 < flips.first.high


@pytest.mark.parametrize("effect", [0.0, 1.5])
def test_the_effect_of_length(monkeypatch, tmp_path, effect):
    length = judged(_by_length(effect), monkeypatch, tmp_path).length
    assert length.effect.low < effect < length.effect.high
    assert (length.longer_wins.low > 0.5) == (effect > 0)


@pytest.mark.parametrize("effect", [0.0, 1.5])
def test_intervals_hold_for_other_judges_of_the_same_leaning(effect):
    """Of 200 judges, the 95% intervals of the effect and of the rate at equal lengths hold for 180 to 199."""
    rows = pairs()
    texts = [(row["generated_answer"], row["baseline"]) for row in rows]
    difference = np.array([float(len(answer) - len(other)) for answer, other in texts])
    effects = rates = 0
    for seed in range(200):
        judge = _by_length(effect, seed)
        wins = np.array([float(judge.winner(*pair) == 1) for pair in texts])
        slope, rate = interval(length_effect(wins, difference)), interval(length_controlled(wins, difference))
        effects += slope.low < effect < slope.high
        rates += rate.low < 0.5 < rate.high
    assert 180 <= effects <= 199
    assert 180 <= rates <= 199


def _by_length(effect: float, seed: int = 0) -> Leanings:
    """With a strength of 1e-9, the quality decides nothing: at equal lengths, either answer wins half of the time."""
    return Leanings(length=effect, strength=1e-9, seed=seed)
