"""A file that changes while a run is continued: whatever was made of the old content is made again."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from multimodal_eval import Metric, Run, evaluate, resume
from multimodal_eval.core.corpus import Corpus
from multimodal_eval.core.errors import DamagedFileError, RunFolderError
from multimodal_eval.core.registry import register
from multimodal_eval.core.score import Score
from tests.parts import interrupt, leave_out, set_part_size

ROWS = [{"id": str(number), "question": str(number), "references": ["a b"]} for number in range(6)]
WORDS = {"first": "a b c", "second": "a"}


def words(samples) -> int:
    return sum(len((sample.generated_answer or "").split()) for sample in samples)


class Share(Metric):
    """The words of an answer out of those of all answers, so that every score depends on every answer."""

    name, version, needs, bounds = "share", "1", ("generated_answer",), (0.0, 1.0)
    corpus = Corpus(fit=words)

    def open(self, state):
        class Scorer:
            def score(self, batch):
                return [Score(words([sample]) / state) for sample in batch]

        return Scorer()


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """Runs a model that says other words the second time it is asked, and loses the answers of the first part."""
    set_part_size(monkeypatch, 2)
    register(Share())
    said = ["first"]

    def model(request):
        return WORDS[said[0]]

    run = evaluate(ROWS, metrics=["share"], model=model, output=tmp_path / "run", progress=False)
    assert run["share"]["value"] == pytest.approx(1 / 6)
    said[0] = "second"

    def again() -> Run:
        return resume(tmp_path / "run", model=model, progress=False)

    return run, again


def test_other_answers_have_other_statistics_and_scores(answered):
    run, again = answered
    (run.path / "answers" / "part-00000.parquet").unlink()
    shares = again().scores().column("share").to_pylist()
    assert shares == pytest.approx([1 / 14] * 2 + [3 / 14] * 4)  # 2 * 1 + 4 * 3 words
    assert [row["generated_answer"] for row in pq.read_table(run.path / "samples").to_pylist()] == (
        [WORDS["second"]] * 2 + [WORDS["first"]] * 4
    )


def test_an_interrupted_repair_keeps_no_score_of_other_answers(answered, monkeypatch):
    run, again = answered
    (run.path / "answers" / "part-00000.parquet").unlink()
    with monkeypatch.context() as patch:
        interrupt(patch, "Fit")
        with pytest.raises(KeyboardInterrupt):
            again()
    shares = again().scores().column("share").to_pylist()
    assert shares == pytest.approx([1 / 14] * 2 + [3 / 14] * 4)


def test_results_that_are_older_than_the_scores_are_computed_again(tmp_path):
    rows = [{"id": "1", "expected_answer": "a", "generated_answer": "a"}]
    run = evaluate(rows, metrics=["exact_match"], output=tmp_path / "run")
    before = (tmp_path / "run" / "results.json").read_bytes()
    folder = run.folder
    table = folder.read_part("scores", 0)
    changed = table.set_column(table.column_names.index("exact_match"), "exact_match", [[0.0]])
    folder.write_info(replace(folder.read_info(), state="scoring", finished=None))
    folder.write_part("scores", 0, changed)
    assert resume(tmp_path / "run")["exact_match"]["value"] == 0.0
    assert (tmp_path / "run" / "results.json").read_bytes() != before


def test_damage_that_no_step_mends_is_refused(tmp_path, monkeypatch):
    evaluate(
        [{"id": "1", "expected_answer": "a", "generated_answer": "a"}], metrics=["exact_match"], output=tmp_path / "run"
    )
    (tmp_path / "run" / "scores" / "part-00000.parquet").write_bytes(b"x")
    leave_out(monkeypatch, "Score")
    with pytest.raises(DamagedFileError, match=r"scores/part-00000.parquet is damaged"):
        resume(tmp_path / "run")


@pytest.mark.parametrize("damaged", ["samples", "answers"])
def test_a_refused_repair_leaves_the_run_as_it_is(tmp_path, monkeypatch, damaged):
    data = tmp_path / "data.jsonl"
    data.write_text('{"id": "1", "question": "q", "expected_answer": "a"}\n')
    run = evaluate(data, metrics=["exact_match"], model=lambda request: "a", output=tmp_path / "run", progress=False)
    (run.path / damaged / "part-00000.parquet").write_bytes(b"x")
    data.write_text('{"id": "2", "question": "q", "expected_answer": "a"}\n')
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with pytest.raises(RunFolderError):  # the input has changed, or no model is given
        resume(run.path, progress=False)
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
