"""Many runs ranked by a judge: which comparisons are made, and their ratings."""

from __future__ import annotations

import json
from collections import Counter
from math import log
from pathlib import Path

import pytest

from multimodal_eval import evaluate, rank_by_judge
from multimodal_eval.analysis.judge_ratings import RatedSystem, outcomes_of, rate
from multimodal_eval.core.errors import ConfigError, InputError, UnknownNameError
from multimodal_eval.core.judge_config import JudgeConfig
from multimodal_eval.core.sample import Sample
from multimodal_eval.data.runs.run import Run
from multimodal_eval.run.judged_pairs import PairChoice
from tests.judges.ranked_systems import answers_in, fair_judge, quality, runs_of, strict_judge

QUALITIES = {"owl": 2.0, "parrot": 1.0, "finch": 0.9}


@pytest.fixture(scope="module")
def ranked(tmp_path_factory) -> Run:
    folder = tmp_path_factory.mktemp("ranked")
    return rank_by_judge(runs_of(folder, QUALITIES, 200), judge=fair_judge, output=folder / "ranking", progress=False)


def by_name(run: Run, **options) -> dict[str, RatedSystem]:
    return {system.name: system for system in rate([run], scale="log", **options).systems}


def test_ratings_are_those_of_the_judge(ranked):
    # The judge follows the Bradley-Terry model, so the intervals should have the differences of the qualities.
    board = rate([ranked], scale="log")
    assert board.systems[0].name == "owl"
    mean = sum(QUALITIES.values()) / 3
    for system in board.systems:
        assert system.low is not None
        assert system.high is not None
        assert system.low < QUALITIES[system.name] - mean < system.high
        assert system.comparisons == 400
        assert (system.ties, system.wins + system.losses) == (0, 400)
    assert (board.systems[0].best_rank, board.systems[0].worst_rank) == (1, 1)
    assert board.method.endswith("200 clusters")
    assert (board.samples, board.unscored) == (600, 0)


def test_elo_is_the_same_in_points(ranked):
    for system, points in zip(rate([ranked], scale="log").systems, rate([ranked]).systems, strict=True):
        assert points.rating == pytest.approx(1000 + 400 / log(10) * system.rating)
        assert points.high == pytest.approx(1000 + 400 / log(10) * system.high)


def test_an_anchor_has_a_fixed_rating(ranked):
    systems = by_name(ranked, anchor="parrot")
    assert systems["parrot"].rating == systems["parrot"].low == 0
    plain = by_name(ranked)
    assert systems["owl"].rating == pytest.approx(plain["owl"].rating - plain["parrot"].rating)
    with pytest.raises(UnknownNameError, match="no system is named 'robin'"):
        rate([ranked], anchor="robin")


def test_pairs_with_the_first_run_only(tmp_path):
    run = rank_by_judge(runs_of(tmp_path, QUALITIES, 30), judge=fair_judge, pairs="baseline", progress=False)
    pairs = Counter((s.metadata["system"], s.metadata["baseline_system"]) for s in run.samples())
    assert pairs == {("owl", "parrot"): 30, ("owl", "finch"): 30}
    assert by_name(run)["owl"].comparisons == 60


def test_random_pairs_of_each_sample(tmp_path):
    systems = {f"bird{number}": number / 10 for number in range(5)}
    runs = runs_of(tmp_path, systems, 60)
    run = rank_by_judge(runs, judge=fair_judge, pairs="random:2", progress=False)
    samples = list(run.samples())
    assert set(Counter(sample.metadata["sample"] for sample in samples).values()) == {2}
    assert len({(s.metadata["system"], s.metadata["baseline_system"]) for s in samples}) == 10
    again = rank_by_judge(runs, judge=fair_judge, pairs="random:2", seed=1, progress=False)
    assert {sample.id for sample in again.samples()} != {sample.id for sample in samples}


@pytest.mark.parametrize("text", ["some", "random", "random:", "random:0", "random:-1", "random:x"])
def test_unknown_choices_of_pairs(text):
    with pytest.raises(ConfigError, match="all, baseline or random:N"):
        PairChoice.parse(text)


def test_a_single_run_and_a_judge_of_single_answers_are_refused(tmp_path):
    runs = runs_of(tmp_path, {"owl": 1.0, "finch": 2.0}, 3)
    with pytest.raises(ConfigError, match="at least two runs"):
        rank_by_judge(runs[:1], judge=fair_judge)
    with pytest.raises(ConfigError, match="needs the form 'pairwise'"):
        rank_by_judge(runs, judge=fair_judge, metric=JudgeConfig(name="grade", form="scale"))


def test_a_system_that_wins_everything_is_named(tmp_path):
    run = rank_by_judge(runs_of(tmp_path, QUALITIES, 10), judge=strict_judge, progress=False)
    with pytest.raises(ConfigError, match=r"\{owl\} lost no point to any other system.*--prior 1"):
        rate([run])
    systems = by_name(run, prior=1)
    assert systems["owl"].rating > systems["parrot"].rating > systems["finch"].rating
    assert systems["owl"].wins == 20
    assert "a prior of 1 comparisons" in " ".join(rate([run], prior=1).notes)


def test_groups_that_are_never_compared_are_named(tmp_path):
    first = rank_by_judge(runs_of(tmp_path, {"owl": 1.0, "finch": 1.0}, 10), judge=fair_judge, output=tmp_path / "x")
    second = rank_by_judge(runs_of(tmp_path, {"crow": 1.0, "rook": 1.0}, 10), judge=fair_judge, output=tmp_path / "y")
    with pytest.raises(ConfigError, match=r"connects these groups of systems: \{owl, finch\}, \{crow, rook\}"):
        rate([first, second])


def test_runs_are_rated_together_and_share_clusters(tmp_path):
    runs = runs_of(tmp_path, QUALITIES, 50)
    whole = rank_by_judge(runs, judge=fair_judge, progress=False)
    pairs = zip(runs, [*runs[1:], runs[0]], strict=True)
    parts = [rank_by_judge(pair, judge=fair_judge, progress=False) for pair in pairs]
    together, alone = by_name(whole), {s.name: s for s in rate(parts, scale="log").systems}
    for name, system in together.items():
        assert alone[name].rating == pytest.approx(system.rating)
        assert alone[name].stderr == pytest.approx(system.stderr)


def test_a_comparison_does_not_count_twice(tmp_path, ranked):
    runs = runs_of(tmp_path, QUALITIES, 20)
    whole = rank_by_judge(runs, judge=fair_judge, output=tmp_path / "whole", progress=False)
    mirrored = rank_by_judge([runs[2], runs[1]], judge=fair_judge, output=tmp_path / "part", progress=False)
    message = r"whole and \S+part both compare finch with parrot on the sample '\S+', which would count twice"
    with pytest.raises(ConfigError, match=message):
        rate([whole, mirrored])
    with pytest.raises(ConfigError, match="would count twice"):
        rate([ranked, ranked])


def test_other_judges_are_not_mixed(tmp_path):
    runs = runs_of(tmp_path, {"owl": 1.0, "finch": 1.0}, 10)
    first = rank_by_judge(runs, judge=fair_judge, output=tmp_path / "x", progress=False)
    second = rank_by_judge(runs, judge=strict_judge, output=tmp_path / "y", progress=False)
    with pytest.raises(ConfigError, match=r"preference is judge.* but judge"):
        rate([first, second])


def test_a_failed_answer_is_not_a_loss(tmp_path):
    runs = runs_of(tmp_path, {"owl": 1.0, "finch": 1.0}, 20)
    failing = [
        Sample(f"s{n}", question=f"q{n}?", references=["x"], generated_answer=None, error="timed out")
        if n < 5
        else Sample(f"s{n}", question=f"q{n}?", references=["x"], generated_answer=f"crow says {n}, quality 1.0")
        for n in range(20)
    ]
    evaluate(failing, metrics=["exact_match"], output=tmp_path / "crow", progress=False)
    run = rank_by_judge([*runs, tmp_path / "crow"], judge=fair_judge, progress=False)
    board = rate([run])
    assert (board.samples, board.unscored) == (60, 10)
    assert by_name(run)["crow"].comparisons == 30


def test_a_run_without_comparisons(tmp_path):
    (path,) = runs_of(tmp_path, {"owl": 1.0}, 3)
    with pytest.raises(ConfigError, match="no judge compares systems"):
        rate([Run(path)])
    with pytest.raises(ConfigError, match=r"has no scores of preference\. It has exact_match"):
        rate([Run(path)], metric="preference")


def test_several_judges_need_a_name(tmp_path):
    data = [Sample("1", generated_answer="quality 1", metadata={"baseline": "quality 2"})]
    judges = {name: JudgeConfig(name=name, form="pairwise") for name in ("kind", "stern")}
    run = evaluate(
        data, metrics=["kind", "stern"], judges=judges, judge=strict_judge, output=tmp_path / "two", progress=False
    )
    with pytest.raises(ConfigError, match="Name one with --metrics: kind, stern"):
        rate([run])
    assert outcomes_of([run], "stern").names == ["two", "baseline"]  # names that the samples do not have


def listwise_judge(request) -> str:
    shown = [quality(answer) for answer in answers_in(request)]
    levels = sorted(set(shown), reverse=True)
    return json.dumps({"ranking": [[n for n, value in enumerate(shown, 1) if value == level] for level in levels]})


@pytest.mark.parametrize(("named", "first"), [({"system": "a"}, "a"), ({}, "lists")])  # or the name of the run folder
def test_a_ranked_list_is_all_its_pairs(tmp_path, named, first):
    # Three systems on four samples; all pairs are worked out by hand from the qualities of the answers.
    table = [(3, 2, 1), (1, 3, 2), (2, 2, 1), (1, 2, 3)]
    samples = [
        Sample(
            str(number),
            generated_answer=f"quality {a}",
            metadata={
                "baseline": [f"quality {b}", f"quality {c}"],
                "baseline_system": ["b", "c"],
                **named,
            },
        )
        for number, (a, b, c) in enumerate(table)
    ]
    judge = JudgeConfig(name="order", form="listwise")
    run = evaluate(
        samples,
        metrics=["order"],
        judges={"order": judge},
        judge=listwise_judge,
        output=tmp_path / "lists",
        progress=False,
    )
    outcomes = outcomes_of([run])
    # a against b: win, loss, tie, loss; a against c: win, loss, win, loss; b against c: win, win, win, loss.
    assert outcomes.names == [first, "b", "c"]
    assert outcomes.comparisons.points.tolist() == [[0, 1.5, 2], [2.5, 0, 3], [2, 1, 0]]
    assert outcomes.comparisons.ties.sum() == 1
    assert outcomes.comparisons.units == 4
    systems = {system.name: system for system in rate([run]).systems}
    assert (systems["b"].wins, systems["b"].ties, systems["b"].losses) == (5, 1, 2)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"system": 7}, "must be names of systems"),
        ({"system": "a", "baseline_system": "a"}, "compared with itself"),
        ({"system": "a", "baseline_system": ["b", 3]}, "must be names of systems"),
        ({"system": "a", "baseline_system": []}, "must be names of systems"),
    ],
)
def test_bad_names_of_systems(tmp_path, metadata, message):
    data = [Sample("1", generated_answer="quality 1", metadata={"baseline": "quality 2", **metadata})]
    judge = JudgeConfig(name="kind", form="pairwise")
    run = evaluate(
        data, metrics=["kind"], judges={"kind": judge}, judge=strict_judge, output=tmp_path / "bad", progress=False
    )
    with pytest.raises(InputError, match=message):
        rate([run])


def test_a_scale_is_not_a_share_of_wins(tmp_path):
    judge = JudgeConfig(name="grade", form="scale")
    data = [Sample("1", generated_answer="x", metadata={"baseline": "y"})]
    run = evaluate(
        data,
        metrics=["grade"],
        judges={"grade": judge},
        judge=lambda request: '{"score": 3}',
        output=tmp_path / "grades",
        progress=False,
    )
    with pytest.raises(ConfigError, match="not the share of wins"):
        rate([run], metric="grade")


def test_json_has_everything(ranked):
    table = rate([ranked]).to_dict()
    assert json.loads(json.dumps(table))["systems"][0]["name"] == "owl"
    assert table["systems"][0]["comparisons"] == 400


def test_parts_of_verdicts_of_repeats_and_panels(tmp_path):
    # Two judges that always disagree: every comparison is half a win of each, and no tie.
    def first(request) -> str:
        return json.dumps({"verdict": "1" if "owl" in answers_in(request)[0] else "2"})

    def second(request) -> str:
        return json.dumps({"verdict": "2" if "owl" in answers_in(request)[0] else "1"})

    runs = runs_of(tmp_path, {"owl": 1.0, "finch": 1.0}, 10)
    run = rank_by_judge(runs, judge=[first, second], progress=False)
    (owl, _) = rate([run]).systems
    assert (owl.rating, owl.ties, owl.wins) == (pytest.approx(1000), 0, 5)


def test_paths_are_runs(tmp_path: Path):
    runs = runs_of(tmp_path, {"owl": 1.0, "finch": 1.0}, 5)
    run = rank_by_judge([Run(runs[0]), runs[1]], judge=fair_judge, progress=False)
    assert outcomes_of([run]).names == ["owl", "finch"]
