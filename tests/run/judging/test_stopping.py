"""Rankings whose pairs stop when they are certain: the whole way, with slow, failing and killed judges."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from multimodal_eval import JudgeConfig, compare_by_judge, evaluate, rank_by_judge, rescore, resume
from multimodal_eval.analysis.judge_ratings import rate
from multimodal_eval.analysis.preferences import preference_of
from multimodal_eval.cli.finish import print_blocks
from multimodal_eval.cli.report import page_of
from multimodal_eval.core.errors import ConfigError, OpenSamplesError
from multimodal_eval.core.judge_config import JudgeUntil
from multimodal_eval.data.runs.run import Run
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.display.of_judges import preference_of_run_blocks
from multimodal_eval.display.run_findings import run_findings
from multimodal_eval.generate.protocol import Answer, Request
from multimodal_eval.judges.verdict_tables import exchanges_kind, verdicts_kind
from multimodal_eval.run.verify import verify_run
from tests.judges.ranked_systems import draw, fair_judge, runs_of

RANKED = JudgeUntil(ranked=True)
QUALITIES = {"owl": 2.0, "finch": 0.2, "wren": 0.0}
SAMPLES = 80


class Slow:
    """A judge whose replies take different times, and which fails or kills its process at a sample."""

    label = "slow"
    is_cacheable = False

    def __init__(self, fails_at: str = "", *, kills: bool = False, delays: bool = True) -> None:
        self.asked, self.fails_at, self.kills, self.delays = 0, fails_at, kills, delays

    async def answer(self, request: Request) -> Answer:
        self.asked += 1
        if self.fails_at and re.search(rf"\bq{self.fails_at}\?", request.prompt):
            if self.kills:
                raise KeyboardInterrupt
            raise ConnectionError("down")
        if self.delays:
            await asyncio.sleep(draw(request.prompt) / 300)
        return Answer(fair_judge(request))


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    return runs_of(tmp_path_factory.mktemp("runs"), QUALITIES, SAMPLES)


def ranked(runs: list[Path], judge: Slow, output: Path, **settings: Any) -> Run:
    options: dict[str, Any] = {"until": RANKED, "concurrency": 8, "retries": 0, **settings}
    return rank_by_judge(runs, judge=judge, output=output, progress=False, **options)


def stored(run: Run) -> list[Any]:
    """The verdicts of a run, without times."""
    kind = verdicts_kind("preference")
    return [run.folder.read_part(kind, part).to_pylist() for part in range(len(run.info.parts))]


def test_only_needed_comparisons_are_asked(runs, tmp_path):
    judge = Slow()
    run = ranked(runs, judge, tmp_path / "ranking")
    pairs = run.info.judging["preference"].pairs
    compared = sum(pair.compared for pair in pairs)
    assert compared < 0.8 * 3 * SAMPLES
    assert any(pair.is_stopped for pair in pairs)
    # Each comparison is asked in both orders; a few more were on their way when their pair was decided.
    assert 2 * compared <= judge.asked <= 2 * compared + 3 * (2 * 8 + 2)
    assert sum(map(len, stored(run))) == 2 * compared
    scores = run.scores(["preference"]).column("preference")
    assert len(scores) - scores.null_count == compared
    counts = run.outcome.metrics["preference"]
    assert counts.n_scored == compared
    assert any(f"{compared:,} of {3 * SAMPLES:,} comparisons" in note for note in run.outcome.notes)
    assert not verify_run(run.path, deep=True).faults


def test_a_stored_part_is_never_written_again(runs, tmp_path, monkeypatch):
    whole = ranked(runs, Slow(delays=False), tmp_path / "whole")
    written, write = Counter[tuple[str, int]](), RunFolder.write_part

    def counted(folder: RunFolder, kind: str, number: int, table: Any) -> None:
        written[kind, number] += 1
        write(folder, kind, number, table)

    monkeypatch.setattr(RunFolder, "write_part", counted)
    run = ranked(runs, Slow(), tmp_path / "run")
    assert len(run.info.parts) > 10
    kinds = verdicts_kind("preference"), exchanges_kind("preference")
    assert {key: written[key] for key in written if key[0] in kinds} == {
        (kind, part): 1 for kind in kinds for part in range(len(run.info.parts))
    }
    assert stored(run) == stored(whole)


def test_verdicts_are_those_of_a_full_ranking(runs, tmp_path):
    stopped = ranked(runs, Slow(), tmp_path / "stopped")
    whole = ranked(runs, Slow(), tmp_path / "whole", until=None)
    values = dict(zip(*whole.scores(["id", "preference"]).to_pydict().values(), strict=True))
    for identifier, value in zip(*stopped.scores(["id", "preference"]).to_pydict().values(), strict=True):
        assert value is None or value == values[identifier]
    # What was certain is true of all samples.
    means: dict[tuple[str, str], list[float]] = {}
    for sample in whole.samples():
        pair = sample.metadata["system"], sample.metadata["baseline_system"]
        means.setdefault(pair, []).append(values[sample.id])
    for pair in stopped.info.judging["preference"].pairs:
        shares = means[pair.system, pair.baseline_system]
        mean = sum(shares) / len(shares)
        assert pair.low is not None
        assert pair.high is not None
        assert pair.low - 1e-9 <= mean <= pair.high + 1e-9
        assert pair.outcome == ("better" if mean > 0.5 else "worse" if mean < 0.5 else "open")


def test_speed_and_concurrency_change_nothing(runs, tmp_path):
    first = ranked(runs, Slow(), tmp_path / "one", concurrency=1)
    second = ranked(runs, Slow(delays=False), tmp_path / "two", concurrency=32)
    assert first.info.judging == second.info.judging
    assert stored(first) == stored(second)
    assert first.results == second.results


@pytest.mark.parametrize("fails_at", ["3", "40"])
def test_a_run_with_open_questions_continues_to_the_same_decisions(runs, tmp_path, fails_at):
    whole = ranked(runs, Slow(), tmp_path / "whole")
    judge = Slow(fails_at)
    try:
        run = ranked(runs, judge, tmp_path / "open")
    except OpenSamplesError:
        judge.fails_at = ""
        run = resume(tmp_path / "open", judge=judge, progress=False)
    assert run.info.judging["preference"].pairs == whole.info.judging["preference"].pairs
    assert stored(run) == stored(whole)


def test_a_killed_run_continues_to_the_same_decisions(runs, tmp_path):
    whole = ranked(runs, Slow(), tmp_path / "whole")
    judge = Slow("3", kills=True)
    with pytest.raises(KeyboardInterrupt):
        ranked(runs, judge, tmp_path / "killed")
    before = judge.asked
    judge.fails_at = ""
    run = resume(tmp_path / "killed", judge=judge, progress=False)
    assert stored(run) == stored(whole)
    assert run.results == whole.results
    # Only questions that were in flight are asked again.
    assert judge.asked - before < 2 * sum(pair.compared for pair in run.info.judging["preference"].pairs)


def test_damaged_verdicts_are_asked_again(runs, tmp_path):
    run = ranked(runs, Slow(), tmp_path / "ranking")
    before, results = stored(run), run.results
    (run.path / "verdicts" / "preference.part-00001.parquet").unlink()
    run = resume(run.path, judge=Slow(), progress=False)
    assert stored(run) == before
    assert run.results == results


def test_rescoring_asks_nothing_and_keeps_the_decisions(runs, tmp_path):
    judge = Slow()
    run = ranked(runs, judge, tmp_path / "ranking")
    asked = judge.asked
    again = rescore(run, {"metrics": ["preference"], "by": ["system"]}, progress=False)
    assert judge.asked == asked
    assert again.info.judging == run.info.judging
    assert rate([again]).systems == rate([run]).systems


def test_ranks_are_those_of_the_decisions(runs, tmp_path):
    board = rate([ranked(runs, Slow(), tmp_path / "ranking")])
    places = {system.name: (system.best_rank, system.worst_rank) for system in board.systems}
    assert places["owl"] == (1, 1)
    assert board.unscored == 0
    assert board.skipped == sum(pair.population - pair.compared for pair in board.pairs) > 0
    assert "ranks account for the early stop; the intervals of the ratings do not" in board.notes


def test_equal_systems_stop_within_the_margin(tmp_path):
    runs = runs_of(tmp_path / "runs", {"owl": 0.0, "wren": 0.0}, 400)
    run = ranked(runs, Slow(delays=False), tmp_path / "ranking", until=JudgeUntil(ranked=True, margin=0.2))
    (pair,) = run.info.judging["preference"].pairs
    assert (pair.outcome, pair.is_stopped) == ("equal", True)


def test_the_preference_of_a_stopped_comparison_is_that_of_its_decision(runs, tmp_path, capsys):
    judge = Slow(delays=False)
    run = compare_by_judge(runs[0], runs[2], judge=judge, output=tmp_path / "pairs", progress=False, until=RANKED)
    (decided,) = run.info.judging["preference"].pairs
    assert decided.is_stopped
    preference = preference_of(run, "preference")
    entry = run.outcome.metrics["preference"]
    for figure in (preference.win_rate, entry):
        assert (figure.value, figure.low, figure.high) == (decided.win_rate, decided.low, decided.high)
        assert figure.stderr is None
        assert "valid at any stopping time" in figure.method
    assert (preference.better, preference.p_value, preference.stopped) == ("owl", None, decided)
    assert preference.failures == []
    (board,) = rate([run]).pairs
    assert board == decided
    print_blocks(preference_of_run_blocks(run, preference))
    shown = capsys.readouterr().out
    assert f"stopped after {decided.compared} of {SAMPLES} pairs: the others were not needed" in shown
    assert "owl is better, by this judge (95% confidence about these 80 pairs, valid at any stopping time)" in shown
    assert "unscored" not in shown
    assert "UNSCORED_SHARE" not in {finding["code"] for finding in run.lint()["findings"]}
    assert not [line for line in [each.sentence for each in run_findings(run)] if "unscored" in line]
    page = page_of([run])
    assert f"not needed after an early stop: {SAMPLES - decided.compared}" in page
    assert "Unscored: " not in page
    assert "owl is better, by this judge (95% confidence about these 80 pairs, valid at any stopping time)" in page
    assert not verify_run(run.path, deep=True).faults


def test_failures_of_a_stopped_comparison_are_still_listed(runs, tmp_path, capsys):
    class Mute(Slow):
        async def answer(self, request: Request) -> Answer:
            number = re.search(r"\bq(\d+)\?", request.prompt)
            assert number is not None
            return Answer("I cannot say.") if int(number[1]) % 4 == 0 else await super().answer(request)

    judge = Mute(delays=False)
    run = compare_by_judge(runs[0], runs[2], judge=judge, output=tmp_path / "pairs", progress=False, until=RANKED)
    preference = preference_of(run, "preference")
    assert preference.stopped is not None
    failed = preference.stopped.compared - preference.scored
    assert failed > 0
    assert all("unreadable" in failure.reason for failure in preference.failures)
    (finding,) = [each for each in run.lint()["findings"] if each["code"] == "UNSCORED_SHARE"]
    assert (finding["count"], finding["total"]) == (failed, preference.stopped.compared)
    (line,) = [line for line in [each.sentence for each in run_findings(run)] if "unscored" in line]
    assert line.startswith(
        f"preference: {failed} of {SAMPLES} ({100 * failed / SAMPLES:.1f}%): samples unscored ({failed} error); most "
        "often: the judge"
    )
    print_blocks(preference_of_run_blocks(run, preference))
    assert f"{failed} of {SAMPLES} ({100 * failed / SAMPLES:.1f}%): pairs unscored" in capsys.readouterr().out


def test_a_comparison_that_did_not_stop_has_an_ordinary_interval(runs, tmp_path):
    until = JudgeUntil(width=0.001)
    judge = Slow(delays=False)
    run = compare_by_judge(*runs[1:], judge=judge, output=tmp_path / "p", progress=False, until=until)
    preference = preference_of(run, "preference")
    assert preference.stopped is None
    assert preference.p_value is not None
    assert preference.win_rate.low < preference.win_rate.value < preference.win_rate.high


def test_a_width_is_reached(runs, tmp_path):
    run = ranked(runs, Slow(delays=False), tmp_path / "ranking", until=JudgeUntil(width=0.2))
    for pair in run.info.judging["preference"].pairs:
        assert pair.is_stopped
        assert pair.low is not None
        assert pair.high is not None
        assert pair.high - pair.low <= 0.4


def test_skipped_equal_answers_are_ties_that_count(tmp_path):
    runs = [runs_of(tmp_path / name, {"owl": 0.0}, 60)[0] for name in ("a", "b")]
    judge = Slow(delays=False)
    settings = {"until": JudgeUntil(ranked=True, margin=0.2), "skip_identical": True}
    run = ranked(runs, judge, tmp_path / "ranking", **settings)
    (pair,) = run.info.judging["preference"].pairs
    assert judge.asked == 0
    assert pair.win_rate == 0.5


def test_refused_before_anything_is_asked(runs, tmp_path):
    judge = Slow()
    with pytest.raises(ConfigError, match="either `width` or `ranked`"):
        ranked(runs, judge, tmp_path / "ranking", until=JudgeUntil())
    assert judge.asked == 0
    assert not (tmp_path / "ranking").exists()


def test_the_stop_is_not_part_of_the_question(runs, tmp_path):
    stopped = ranked(runs[:2], Slow(delays=False), tmp_path / "stopped")
    whole = ranked(runs[:2], Slow(delays=False), tmp_path / "whole", until=None)
    assert stopped.info.signatures["preference"] == whole.info.signatures["preference"]
    exchanges = stopped.folder.read_part(exchanges_kind("preference"), 0)
    assert len(exchanges) == len(stopped.folder.read_part(verdicts_kind("preference"), 0))
    assert msgspec.json.encode(stopped.info)


def test_samples_of_a_file_are_drawn(tmp_path):
    data = [
        {"id": f"s{n}", "generated_answer": f"owl {n}, quality 3", "baseline": f"wren {n}, quality 0"}
        for n in range(60)
    ]
    judge = JudgeConfig(name="preference", form="pairwise", until=RANKED)
    run = evaluate(data, metrics=[judge], judge=Slow(delays=False), output=tmp_path / "run", seed=5, progress=False)
    ids = [sample.id for sample in run.samples()]
    assert sorted(ids) == sorted(row["id"] for row in data)
    assert ids != [row["id"] for row in data]
    (pair,) = run.info.judging["preference"].pairs
    assert (pair.system, pair.outcome) == ("run", "better")


def test_samples_of_another_run_are_not_in_a_random_order(runs, tmp_path):
    whole = ranked(runs[:2], Slow(delays=False), tmp_path / "whole", until=None)
    judge = JudgeConfig(name="other", form="pairwise", question="Which is nicer?", until=RANKED)
    with pytest.raises(ConfigError, match="`until` needs samples in a random order"):
        rescore(
            whole,
            {"metrics": ["other"], "judges": {"other": judge}},
            judge=Slow(delays=False),
            output=tmp_path / "again",
            progress=False,
        )
