"""When the comparisons of a pair of systems may stop."""

from __future__ import annotations

import random
from math import ceil
from typing import Any

import msgspec
import numpy as np
import pytest

from multimodal_eval import rank_by_judge
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import JudgeConfig, JudgeUntil
from multimodal_eval.data.runs.run import Run
from multimodal_eval.evaluation.judge_metric import JudgeMetric
from multimodal_eval.judges.verdict_tables import Judged, rows_of, verdicts_kind
from multimodal_eval.run.ask.until_pairs import UntilPairs, check_until, until_pairs
from multimodal_eval.run.plan import make_plan
from multimodal_eval.stats.betting import Units, confidence_sequence, log_capital, refusal_at
from tests.judges.ranked_systems import fair_judge, runs_of

QUALITIES = {"owl": 1.5, "finch": 0.1, "wren": 0.0}


@pytest.fixture(scope="module")
def compared(tmp_path_factory) -> Run:
    """All comparisons of three systems on 150 samples."""
    folder = tmp_path_factory.mktemp("compared")
    return rank_by_judge(runs_of(folder, QUALITIES, 150), judge=fair_judge, output=folder / "all", progress=False)


def stopper_of(run: Run, until: JudgeUntil) -> UntilPairs:
    judge = msgspec.structs.replace(run.info.config.judges["preference"], until=until)
    plan = make_plan(msgspec.structs.replace(run.info.config, judges={"preference": judge}))
    (metric,) = plan.judges
    stopper = until_pairs(plan, run.folder, run.info, metric)
    assert stopper is not None
    return stopper


def verdicts_of(run: Run) -> list[Judged]:
    tables = (run.folder.read_part(verdicts_kind("preference"), part) for part in range(len(run.info.parts)))
    return [judged for table in tables for judged in rows_of(table)]


def expected(run: Run, until: JudgeUntil) -> dict[tuple[str, str], tuple[int, str]]:
    """After how many samples each pair stops, and what is then certain: straight from the stored scores."""
    values: dict[tuple[str, str], list[float]] = {}
    scores = run.scores(["preference"]).column("preference").to_pylist()
    for sample, value in zip(run.samples(), scores, strict=True):
        values.setdefault((sample.metadata["system"], sample.metadata["baseline_system"]), []).append(value)
    level = 1 - (1 - until.confidence) / len(values)
    decisions = {}
    for pair, shares in values.items():
        count, decision = 20, (len(shares), "open")
        while count < len(shares):
            interval = confidence_sequence(
                np.array(shares[:count]), len(shares), (0.0, 1.0), width=until.width, level=level
            )
            low, high = interval.low or 0.0, interval.high or 0.0
            margin = until.margin or 0.0
            outcome = "better" if low > 0.5 else "worse" if high < 0.5 else "open"
            if outcome == "open" and low >= 0.5 - margin and high <= 0.5 + margin:
                outcome = "equal"
            if (high - low) / 2 <= until.width if until.width is not None else outcome != "open":
                decision = count, outcome
                break
            count = max(count + 1, ceil(count * 1.05))
        decisions[pair] = decision
    return decisions


@pytest.mark.parametrize(
    "until",
    [
        JudgeUntil(ranked=True),
        JudgeUntil(ranked=True, confidence=0.6),
        JudgeUntil(ranked=True, margin=0.2),
        JudgeUntil(width=0.15),
        JudgeUntil(width=0.01),
    ],
)
@pytest.mark.parametrize("seed", [0, 1])
def test_decisions_do_not_depend_on_the_order_of_replies(compared, until, seed):
    stopper = stopper_of(compared, until)
    replies = verdicts_of(compared)
    for part in range(len(compared.info.parts)):
        stopper.prepare(part)
    random.Random(seed).shuffle(replies)
    for reply in replies:
        stopper.seen(reply)
        if stopper.is_due:
            stopper.look()
    wanted = expected(compared, until)
    pairs = stopper.pairs()
    for pair in pairs:
        count, outcome = wanted[pair.system, pair.baseline_system]
        assert pair.compared == count
        assert pair.is_stopped == (count < 150)
        assert pair.population == 150
        if pair.is_stopped:
            assert pair.outcome == outcome
    stopped = {(pair.system, pair.baseline_system): pair.compared for pair in pairs}
    places: dict[tuple[str, str], int] = {}
    for row, sample in enumerate(compared.samples()):
        pair_names = sample.metadata["system"], sample.metadata["baseline_system"]
        place_in_pair = places.get(pair_names, 0)
        places[pair_names] = place_in_pair + 1
        assert stopper.wants(row) == (place_in_pair < stopped[pair_names])


def test_some_pair_stops_and_some_pair_does_not(compared):
    # Otherwise the tests above would show little.
    counts = expected(compared, JudgeUntil(ranked=True))
    assert counts["owl", "wren"][0] < 100
    assert counts["finch", "wren"][0] > 100


def test_a_restored_run_decides_the_same(compared):
    until = JudgeUntil(ranked=True)
    stopper = stopper_of(compared, until)
    stopper.restore(range(len(compared.info.parts)))
    stopper.look()
    assert {pair.compared for pair in stopper.pairs()} == {count for count, _ in expected(compared, until).values()}


def test_all_samples_give_the_exact_win_rate(compared):
    stopper = stopper_of(compared, JudgeUntil(width=0.0001))
    stopper.restore(range(len(compared.info.parts)))
    stopper.look()
    pair = stopper.pairs()[2]
    assert not pair.is_stopped
    assert pair.low == pair.high == pair.win_rate


def test_rows_wait_for_the_next_decision(compared):
    stopper = stopper_of(compared, JudgeUntil(ranked=True))
    # Three pairs alternate: row 59 is the 20th comparison of its pair, which the first decision needs.
    assert stopper.may_ask(59, 0)
    assert not stopper.may_ask(60, 0)
    assert stopper.may_ask(62, 3)  # one further row of each of three pairs
    assert not stopper.may_ask(63, 3)


def test_a_failed_answer_counts_as_drawn(tmp_path):
    from multimodal_eval import Sample, evaluate

    runs = runs_of(tmp_path, {"owl": 3.0}, 60)
    samples = [
        Sample(f"s{n}", question=f"q{n}?", references=["x"], error="lost")
        if n % 2
        else Sample(f"s{n}", question=f"q{n}?", references=["x"], generated_answer=f"wren {n}, quality 0")
        for n in range(60)
    ]
    evaluate(samples, metrics=["exact_match"], output=tmp_path / "wren", progress=False)
    run = rank_by_judge([*runs, tmp_path / "wren"], judge=fair_judge, output=tmp_path / "rank", progress=False)
    stopper = stopper_of(run, JudgeUntil(ranked=True))
    stopper.restore(range(len(run.info.parts)))
    stopper.look()
    (pair,) = stopper.pairs()
    assert (pair.outcome, pair.population) == ("better", 60)
    assert 20 < pair.compared < 60


def test_rows_before_the_next_decision_are_kept_whatever_it_is(compared):
    stopper = stopper_of(compared, JudgeUntil(ranked=True))
    assert stopper.is_settled(range(60))  # the first 20 comparisons of three pairs
    assert not stopper.is_settled(range(61))
    stopper.restore(range(len(compared.info.parts)))
    stopper.look()
    assert stopper.is_settled(range(450))  # every pair is decided, or was compared to the end


def metric_of(**settings: Any) -> JudgeMetric:
    return JudgeMetric(JudgeConfig(name="preference", **settings))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"form": "scale", "until": JudgeUntil(ranked=True)}, "comparisons of two systems, but its form is scale"),
        ({"form": "pairwise", "until": JudgeUntil()}, "either `width` or `ranked`"),
        ({"form": "pairwise", "until": JudgeUntil(ranked=True, width=0.1)}, "either `width` or `ranked`"),
        ({"form": "pairwise", "until": JudgeUntil(width=0.1, margin=0.1)}, "`margin` belongs to `ranked`"),
    ],
)
def test_settings_that_cannot_stop(config, message):
    with pytest.raises(ConfigError, match=message):
        check_until(metric_of(**config))


def test_settings_that_can_stop():
    check_until(metric_of(form="pairwise"))
    check_until(metric_of(form="pairwise", until=JudgeUntil(width=0.1)))


def test_all_intervals_hold_together_at_any_time():
    # 20 pairs over the same 200 samples, in 40 random orders: at most 5% of the orders may ever miss a win rate.
    rng = np.random.default_rng(3)
    population = (rng.random((200, 20)) < rng.uniform(0.2, 0.8, 20)).astype(float)
    means = population.mean(axis=0)
    threshold = refusal_at(1 - 0.05 / 20)
    missed = 0
    for _ in range(40):
        drawn = population[rng.permutation(200)]
        units = [(Units.of(drawn[:, pair], 200, (0.0, 1.0)), means[pair]) for pair in range(20)]
        capitals = [log_capital(unit, mean).max() for unit, mean in units]
        capitals += [log_capital(unit.mirrored, 1 - mean).max() for unit, mean in units]
        missed += max(capitals) >= threshold
    assert missed <= 5  # more has a probability below 2 % at 5 %
