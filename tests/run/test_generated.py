"""`generate` in Python: answers first, scores later; and `evaluate` and `resume` with a model."""

from __future__ import annotations

import gc
import re
import shutil
from pathlib import Path

import pytest

from multimodal_eval import GeneratedRun, evaluate, generate, resume
from multimodal_eval.core.errors import ConfigError, OpenSamplesError, RunFolderError
from multimodal_eval.data.runs.grants import is_own
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.generate.meter import BudgetError
from multimodal_eval.generate.protocol import Answer, Request
from multimodal_eval.run.generated import continue_generation
from tests.generate.counting_model import CountingModel

ROWS = [
    {"id": "a", "question": "say red", "references": ["red"]},
    {"id": "b", "question": "say blue", "references": ["green"]},
    {"id": "c", "question": "say refuse", "references": ["x"]},
]
DOWN = [*ROWS, {"id": "d", "question": "say down", "references": ["down"]}]
ONE = {"concurrency": 1}  # the answers before a failure are stored


@pytest.fixture(autouse=True)
def without_cache(monkeypatch):
    monkeypatch.setenv("MMEVAL_CACHE", "off")


def test_answers_with_their_statuses():
    run = generate(ROWS, model=CountingModel())
    assert len(run) == 3
    assert run.generation.statuses == {"ok": 2, "refused": 1}
    assert [sample.generated_answer for sample in run.samples()] == ["red", "blue", None]
    assert run.answers().column("status").to_pylist() == ["ok", "ok", "refused"]
    assert repr(run) == "3 samples, answered by counting: 2 ok, 1 refused"


def test_a_function_is_a_model():
    run = generate(ROWS[:2], model=lambda request: request.prompt.upper())
    assert [sample.generated_answer for sample in run.samples()] == ["SAY RED", "SAY BLUE"]


def test_a_function_may_depend_on_the_sample(monkeypatch):
    monkeypatch.delenv("MMEVAL_CACHE")
    rows = [{"id": name, "question": "Who is it?"} for name in "abcdef"]
    for suffix in "12":
        run = generate(rows, model=lambda request: f"{request.id}{suffix}")  # noqa: B023 - called at once
        assert [sample.generated_answer for sample in run.samples()] == [f"{name}{suffix}" for name in "abcdef"]


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"base_url": "http://localhost:1"}, "generation={'base_url': …}"),
        ({"temperature": 0}, "generation={'parameters': {'temperature': …}}"),
    ],
)
def test_a_setting_of_the_generation_in_another_place_is_named(settings, advice):
    with pytest.raises(ConfigError) as refusal:
        generate(ROWS, model="openai:tiny", **settings)
    assert advice in str(refusal.value)


class Mine:
    label = "mine"

    def __init__(self, reply: str) -> None:
        self.reply = reply

    async def answer(self, request: Request) -> Answer:
        return Answer(self.reply)


def test_generators_with_the_same_label_do_not_share_answers_unless_they_say_so(monkeypatch, tmp_path):
    monkeypatch.delenv("MMEVAL_CACHE")
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))

    def answers(kind: type[Mine]) -> list[str | None]:
        runs = (generate([{"question": "Who?"}], model=kind(reply)) for reply in ("first", "second"))
        return [sample.generated_answer for run in runs for sample in run.samples()]

    class Cacheable(Mine):
        is_cacheable = True

    assert answers(Mine) == ["first", "second"]
    assert answers(Cacheable) == ["first", "first"]


def test_a_script_answers_by_id(monkeypatch, tmp_path):
    monkeypatch.delenv("MMEVAL_CACHE")
    (tmp_path / "answers.json").write_text('{"a": "first", "b": "second"}')
    run = generate([{"id": name, "question": "Same?"} for name in "ab"], model=f"script:{tmp_path}/answers.json")
    assert [sample.generated_answer for sample in run.samples()] == ["first", "second"]


def test_equal_requests_to_a_cacheable_model_are_asked_once(monkeypatch, tmp_path):
    monkeypatch.delenv("MMEVAL_CACHE")
    monkeypatch.setenv("MMEVAL_HOME", str(tmp_path))
    model = CountingModel()
    run = generate([{"id": name, "question": "say red"} for name in "abcdef"], model=model)
    assert len(model.calls) == 1
    assert {sample.generated_answer for sample in run.samples()} == {"red"}


def test_scores_are_those_of_one_step():
    two = generate(ROWS, model=CountingModel()).score(metrics=["exact_match"])
    direct = evaluate(ROWS, metrics=["exact_match"], model=CountingModel())
    assert two.results == direct.results
    assert two["exact_match"]["value"] == 0.5


def test_a_temporary_folder_lives_as_long_as_its_last_owner():
    generated = generate(ROWS, model=CountingModel())
    path = generated.path
    scored = generated.score(metrics=["exact_match"])
    del generated
    gc.collect()
    assert path.is_dir()
    assert len(scored) == 3
    del scored
    gc.collect()
    assert not path.exists()


def test_without_a_model():
    with pytest.raises(ConfigError, match="`generate` needs a model"):
        generate(ROWS)


def test_continued_with_the_model_given_again(tmp_path):
    model = CountingModel()
    generation = {"concurrency": 1, "use_cache": False}
    with pytest.raises(Exception, match="the key is not valid"):
        generate(DOWN, model=model, output=tmp_path / "run", generation=generation)
    second = CountingModel(is_up=True)
    run = continue_generation(tmp_path / "run", model=second)
    assert isinstance(run, GeneratedRun)
    assert sorted(model.calls + second.calls) == ["a", "b", "c", "d", "d"]


def test_settings_that_change_an_answer_cannot_change(tmp_path):
    with pytest.raises(Exception, match="the key is not valid"):
        evaluate(DOWN, model=CountingModel(), output=tmp_path / "run", metrics=["exact_match"], generation=ONE)
    with pytest.raises(ConfigError, match="'system' cannot change while a run is continued"):
        resume(tmp_path / "run", model=CountingModel(), generation={"system": "Shout."})
    with pytest.raises(ConfigError, match=r"'conurrency' cannot change .* Did you mean 'concurrency'"):
        resume(tmp_path / "run", model=CountingModel(), generation={"conurrency": 3})
    run = resume(tmp_path / "run", model=CountingModel(is_up=True), generation={"base_url": "http://localhost:9"})
    assert run.info.generation.base_url == "http://localhost:9"
    assert run.info.config.generation.base_url == "http://localhost:9"


def test_a_model_of_a_program_must_be_given_again(tmp_path):
    with pytest.raises(Exception, match="the key is not valid"):
        evaluate(DOWN, model=CountingModel(), output=tmp_path / "run", metrics=["exact_match"], generation=ONE)
    with pytest.raises(RunFolderError, match=r"asked 'counting', a model of a Python program.*resume\(.*, model=…\)"):
        resume(tmp_path / "run")


def test_a_budget_in_python(tmp_path):
    price = {"input": 1000, "output": 10000}
    settings = {"price": price, "budget": 0.5, "parameters": {"max_tokens": 10}, "concurrency": 1}
    with pytest.raises(BudgetError, match=r"0\.40 USD are spent"):  # 0.2 per answer
        evaluate(ROWS, model=CountingModel(), generation=settings, metrics=["exact_match"], output=tmp_path / "run")
    resume(tmp_path / "run", model=CountingModel(), generation={"budget": 5})


def test_a_budget_without_an_output_folder():
    settings = {"price": {"input": 1000, "output": 10000}, "budget": 0.5, "parameters": {"max_tokens": 10}}
    with pytest.raises(OpenSamplesError, match=r"The answers so far are kept\. Continue with a larger one") as stop:
        generate(ROWS, model=CountingModel(), generation=settings)
    place = re.search(r"--resume (\S+)", str(stop.value))
    assert place is not None
    folder = Path(place[1])
    again = CountingModel()
    continue_generation(folder, model=again, generation={"budget": 5})
    assert again.calls == ["c"]  # 0.2 per answer: the budget allowed two
    shutil.rmtree(folder.parent)


def test_a_run_stays_one_of_the_user(tmp_path, monkeypatch):
    """Also after its settings have changed, in another process: files that it names may be read."""
    monkeypatch.setenv("MMEVAL_STATE", str(tmp_path / "state"))
    generate(ROWS, model=CountingModel(), output=tmp_path / "run")
    GeneratedRun(tmp_path / "run").score(metrics=["exact_match"])
    with pytest.raises(Exception, match="the key is not valid"):
        evaluate(DOWN, model=CountingModel(), output=tmp_path / "second", metrics=["exact_match"], generation=ONE)
    with pytest.raises(Exception, match="the key is not valid"):
        resume(tmp_path / "second", model=CountingModel(), generation={"timeout": 5})
    monkeypatch.setattr("multimodal_eval.data.runs.grants._made_here", set())  # as in another process
    for name in ("run", "second"):
        folder = RunFolder(tmp_path / name)
        assert is_own(folder, folder.read_info())


def test_scoring_a_folder_that_has_no_answers_yet(tmp_path):
    with pytest.raises(Exception, match="the key is not valid"):
        generate(DOWN, model=CountingModel(), output=tmp_path / "run", generation=ONE)
    with pytest.raises(RunFolderError, match="has samples without an answer"):
        GeneratedRun(tmp_path / "run").score(metrics=["exact_match"])


def test_settings_for_reading_an_input_are_refused(tmp_path):
    generate(ROWS, model=CountingModel(), output=tmp_path / "run")
    with pytest.raises(ConfigError, match="'limit' is a setting for reading an input"):
        GeneratedRun(tmp_path / "run").score(metrics=["exact_match"], limit=1)


def test_the_function_and_the_package_of_the_same_name():
    import multimodal_eval
    import multimodal_eval.generate.protocol  # sets an attribute of the package

    assert multimodal_eval.generate is generate
    assert callable(generate)
    assert multimodal_eval.generate.__module__ == "multimodal_eval.run.generated"
