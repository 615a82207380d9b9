"""Generation that stops when a metric is certain."""

import asyncio
import hashlib
import random
from collections import Counter

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from multimodal_eval import Sample, evaluate, load_run, resume
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.data.readers.arranged_input import Draw
from multimodal_eval.data.runs.run_folder import RunFolder
from multimodal_eval.data.runs.storage import LocalStorage
from multimodal_eval.generate.protocol import Answer, EndpointError, RejectedError
from multimodal_eval.run.verify import verify_run
from multimodal_eval.stats.betting import confidence_sequence
from tests.parts import set_part_size
from tests.run.local_runs import PLUGIN

COUNT = 600
UNTIL = {"metric": "exact_match", "width": 0.1}


def samples(count=COUNT):
    return [Sample(id=f"s{number}", question=f"q{number}", expected_answer="yes") for number in range(count)]


def is_right(name, share=0.7):
    """Whether the model knows a sample: the same for every call."""
    return int(hashlib.sha256(name.encode()).hexdigest(), 16) % 1000 < 1000 * share


class Model:
    """Answers some samples right. `asked` counts its requests."""

    label = "test:model"

    def __init__(self, share=0.7, delay=None, fails_after=None):
        self.share, self.delay, self.fails_after = share, delay, fails_after
        self.asked = []

    async def answer(self, request):
        self.asked.append(request.id)
        if self.fails_after is not None and len(self.asked) > self.fails_after:
            raise EndpointError("the endpoint is down")
        if self.delay is not None:
            await asyncio.sleep(self.delay.random() / 200)
        return Answer("yes" if is_right(request.id, self.share) else "no")


def ask(model, path=None, until=UNTIL, data=None, metrics=("exact_match",), **generation):
    settings = {"model": "x", "until": until, "concurrency": 8, "use_cache": False, **generation}
    data = samples() if data is None else data
    return evaluate(data, metrics=list(metrics), model=model, output=path, generation=settings, progress=False)


def stored(path):
    """The files of a run, without times: run.json, the exchanges, and the checksums over them."""
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file() and file.parent.name != "exchanges" and file.suffix != ".json"
    }


def order(count=COUNT):
    names = [sample.id for sample in samples(count)]
    return [names[place] for place in Draw(0).order(names)]


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    set_part_size(monkeypatch, 50)


def test_stops_at_the_first_prefix_that_is_certain(tmp_path):
    run = ask(Model(), tmp_path / "run")
    # The same decision, from the order and the answers alone: lengths 20, 21, 23 (20 * 1.05^k, rounded up), …
    drawn, length = order(), 20
    while True:
        values = np.array([float(is_right(name)) for name in drawn[:length]])
        interval = confidence_sequence(values, COUNT, (0.0, 1.0), width=0.1)
        if (interval.high - interval.low) / 2 <= 0.1:
            break
        length = max(length + 1, -int(-length * 1.05 // 1))
    assert 50 < length < COUNT / 2
    assert [sample.id for sample in run.samples()] == drawn[:length]
    entry = run.outcome.metrics["exact_match"]
    assert (entry.value, entry.low, entry.high, entry.method) == (
        *(values.mean(), interval.low, interval.high),
        "95% betting confidence sequence (Waudby-Smith and Ramdas 2024), valid at any stopping time, "
        f"without replacement, {length} of 600 samples",
    )
    assert entry.n_total == run.outcome.n == sum(run.info.parts) == length
    assert run.info.generation.population == COUNT
    assert run.info.generation.stopped == "exact_match is known to ± 0.1"
    assert run.info.generation.statuses == {"ok": length}
    saved = f"{1 - length / COUNT:.0%}"
    assert run.outcome.notes == [
        f"stopped after {length} of 600 samples, {saved} of the requests saved: exact_match is known to ± 0.1"
    ]
    assert verify_run(tmp_path / "run", deep=True).faults == ()


def test_other_metrics_have_their_usual_intervals_and_a_note():
    run = ask(Model(), metrics=("exact_match", "anls"))
    assert run.outcome.metrics["anls"].method == f"95% Wilson interval, {run.outcome.n} samples"
    assert "confidence sequence" in run.outcome.metrics["exact_match"].method
    assert run.outcome.notes[1] == "the interval of exact_match accounts for the stop; those of other metrics do not"


def test_few_requests_beyond_the_stop():
    model = Model(delay=random.Random(0))
    run = ask(model)
    assert len(model.asked) <= run.outcome.n * 1.05 + 1 + 2 * 8  # the next decision, and those in flight
    assert len(model.asked) == len(set(model.asked))


def test_quick_answers_do_not_change_the_decision(tmp_path):
    ask(Model(), tmp_path / "even")
    for seed in range(3):
        path = tmp_path / f"uneven-{seed}"
        ask(Model(delay=random.Random(seed)), path)
        assert stored(path) == stored(tmp_path / "even")


@pytest.mark.parametrize("fails_after", [5, 70, 130])
def test_a_resumed_run_decides_the_same(tmp_path, fails_after):
    whole = ask(Model(), tmp_path / "whole")
    with pytest.raises(EndpointError):
        ask(Model(fails_after=fails_after), tmp_path / "run")
    assert RunFolder(tmp_path / "run").read_info().state == "generating"
    model = Model()
    run = resume(tmp_path / "run", model=model, progress=False)
    assert stored(tmp_path / "run") == stored(tmp_path / "whole")
    assert run.outcome == whole.outcome
    assert len(model.asked) < whole.outcome.n + 30 - fails_after + 16


@pytest.mark.parametrize("changes", [0, 4, 10, 12])
def test_a_run_that_was_killed_while_it_stopped(tmp_path, monkeypatch, changes):
    """Before its first change of a file after run.json says that it has stopped, and before later ones."""
    ask(Model(), tmp_path / "whole")
    path, left = tmp_path / "run", changes

    def until_killed(method):
        def change(storage, name, *arguments, **settings):
            nonlocal left
            if (path / "run.json").exists() and b'"stopped":' in (path / "run.json").read_bytes():
                left -= 1
                if left < 0:
                    raise KeyboardInterrupt
            method(storage, name, *arguments, **settings)

        return change

    with monkeypatch.context() as patch:
        for name in ("write", "remove"):
            patch.setattr(LocalStorage, name, until_killed(getattr(LocalStorage, name)))
        with pytest.raises(KeyboardInterrupt):
            ask(Model(), path)
    assert RunFolder(path).read_info().generation.stopped
    model = Model()
    resume(path, model=model, progress=False)
    assert model.asked == []
    assert stored(path) == stored(tmp_path / "whole")
    assert verify_run(path, deep=True).faults == ()


def test_a_stored_part_is_never_written_again(tmp_path, monkeypatch):
    """Many parts after a decision are complete before it is made: up to 64 further rows are asked."""
    written, write = Counter(), RunFolder.write_part

    def counted(folder, kind, number, table):
        written[kind, number] += 1
        write(folder, kind, number, table)

    monkeypatch.setattr(RunFolder, "write_part", counted)
    set_part_size(monkeypatch, 6)
    run = ask(Model(delay=random.Random(4)), tmp_path / "run", concurrency=64)
    parts = len(run.info.parts)
    for kind in ("samples", "answers", "exchanges"):
        assert len(list((tmp_path / "run" / kind).iterdir())) == parts
        times = [written[kind, part] for part in range(COUNT // 6)]
        before = kind == "samples"  # they are stored without answers first
        assert times == [before + 1] * parts + [int(before)] * (COUNT // 6 - parts)


def test_the_part_where_it_stopped_can_be_read_again(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_bytes(b"\n".join(map(msgspec.json.encode, samples())))
    ask(Model(), tmp_path / "run", data=path)
    sizes = load_run(tmp_path / "run").info.parts
    for number, size in enumerate(sizes):
        part = tmp_path / "run" / "samples" / f"part-{number:05d}.parquet"
        before = part.read_bytes()
        part.unlink()
        resume(tmp_path / "run", model=Model(), progress=False)
        assert part.read_bytes() == before
        first = sum(sizes[:number])
        assert pq.read_table(part).column("id").to_pylist() == order()[first : first + size]


def test_failed_answers_are_not_wrong_ones():
    class Refusing(Model):
        async def answer(self, request):
            if int(request.id[1:]) % 5 == 0:
                raise RejectedError("no")
            return await super().answer(request)

    run = ask(Refusing())
    entry = run.outcome.metrics["exact_match"]
    assert 0 < entry.n_scored < entry.n_total < COUNT
    scored = [float(is_right(s.id)) if int(s.id[1:]) % 5 else np.nan for s in run.samples()]
    interval = confidence_sequence(np.array(scored), COUNT, (0.0, 1.0), width=0.1)
    assert (entry.low, entry.high) == (interval.low, interval.high)


def test_all_samples_if_they_are_needed():
    model = Model()
    run = ask(model, data=samples(60), until={"metric": "exact_match", "width": 0.0001})
    assert len(model.asked) == run.outcome.n == 60
    assert run.info.generation.stopped is None
    assert run.outcome.metrics["exact_match"].method == "95% Wilson interval, 60 samples"
    assert run.outcome.notes == ["all 60 samples were needed: exact_match was not certain before"]


def test_an_open_sample_prevents_the_decision(tmp_path):
    class Broken(Model):
        async def answer(self, request):
            if request.id == order()[10]:
                raise ConnectionError("reset")
            return await super().answer(request)

    from multimodal_eval.core.errors import OpenSamplesError

    model = Broken()
    with pytest.raises(OpenSamplesError, match="samples without an answer so far: 1"):
        ask(model, tmp_path / "run", retries=0)
    assert len(model.asked) < 60  # no more than before the first decision, and a few ahead
    resume(tmp_path / "run", model=Model(), progress=False)
    ask(Model(), tmp_path / "whole")
    assert stored(tmp_path / "run") == stored(tmp_path / "whole")


# better than another run


def test_stops_when_the_difference_is_certain(tmp_path):
    ask(Model(share=0.3), tmp_path / "old", until=None)
    model = Model(share=0.9)
    run = ask(model, tmp_path / "new", until={"better_than": str(tmp_path / "old")})
    assert 20 <= run.outcome.n < COUNT / 3
    assert run.info.config.generation.until.metric == "exact_match"
    assert run.info.generation.stopped.startswith("exact_match is higher than in old, difference +0.")
    assert run.info.generation.population == COUNT
    entry = run.outcome.metrics["exact_match"]
    assert f"{run.outcome.n} of 600 samples" in entry.method
    assert verify_run(tmp_path / "new", deep=True).faults == ()


def test_the_worse_run_is_named(tmp_path):
    ask(Model(share=0.9), tmp_path / "old", until=None)
    run = ask(Model(share=0.3), until={"better_than": str(tmp_path / "old")})
    assert run.info.generation.stopped.startswith("exact_match is lower than in old, difference -0.")


def test_equal_runs_are_asked_to_the_end(tmp_path):
    ask(Model(), tmp_path / "old", until=None)
    run = ask(Model(), until={"better_than": str(tmp_path / "old")})
    assert run.outcome.n == COUNT
    assert run.info.generation.stopped is None


def test_only_shared_samples_are_compared_and_drawn_first(tmp_path):
    ask(Model(share=0.4), tmp_path / "old", until=None, data=samples(300)[100:])
    run = ask(Model(share=0.8), data=samples(300), until={"better_than": str(tmp_path / "old")})
    assert run.info.generation.population == 200
    assert all(int(sample.id[1:]) >= 100 for sample in run.samples())
    assert run.info.generation.stopped


def test_a_resumed_comparison_decides_the_same(tmp_path):
    ask(Model(share=0.4), tmp_path / "old", until=None)
    until = {"better_than": str(tmp_path / "old")}
    ask(Model(share=0.7), tmp_path / "whole", until=until)
    with pytest.raises(EndpointError):
        ask(Model(share=0.7, fails_after=25), tmp_path / "run", until=until)
    resume(tmp_path / "run", model=Model(share=0.7), progress=False)
    assert stored(tmp_path / "run") == stored(tmp_path / "whole")


# with epochs


def test_epochs_are_one_draw():
    class Varied(Model):
        async def answer(self, request):
            return Answer("yes" if is_right(f"{request.id} {request.epoch}") else "no")

    run = ask(Varied(), epochs=2)
    rows = list(run.samples())
    ids = [sample.id for sample in rows]
    assert len(ids) % 2 == 0
    assert ids == [f"{name}#{epoch}" for name in order()[: len(ids) // 2] for epoch in (1, 2)]
    values = np.array([float(is_right(f"{sample.id} {sample.epoch}")) for sample in rows])
    interval = confidence_sequence(values, COUNT, (0.0, 1.0), width=0.1, size=2)
    entry = run.outcome.metrics["exact_match"]
    assert (entry.low, entry.high) == (interval.low, interval.high)
    assert f"{len(ids) // 2} of 600 samples" in entry.method


# refused before anything is asked


@pytest.mark.parametrize(
    ("metrics", "until", "message"),
    [
        (["exact_match"], {"metric": "exact_match"}, "either `width` or `better_than`"),
        (["exact_match"], {"metric": "f1", "width": 0.1}, "cannot decide by 'f1'. Name one of exact_match"),
        (["exact_match"], {"metric": "composite", "width": 0.1}, "cannot decide by the composite"),
        (
            ["cider", "exact_match"],
            {"metric": "cider", "width": 0.1},
            "cider needs statistics of all samples.* exact_m",
        ),
        (["bleu"], {"metric": "bleu", "width": 0.1}, "bleu is not the mean.*this run has none"),
        (["slow_words"], {"metric": "slow_words", "width": 0.1}, "slow_words have no bounds"),
        (["exact_match"], {"metric": "exact_match", "width": 0.5}, "always known to ± 0.5.*between 0 and 1"),
    ],
)
def test_refused_settings(tmp_path, metrics, until, message):
    model = Model()
    with pytest.raises(ConfigError, match=message):
        evaluate(
            samples(30),
            metrics=metrics,
            plugins=[PLUGIN],
            model=model,
            generation={"model": "x", "until": until},
            output=tmp_path / "run",
            progress=False,
        )
    assert model.asked == []
    assert not (tmp_path / "run").exists()


def test_dialogues_are_not_drawn_turn_by_turn():
    model = Model()
    with pytest.raises(ConfigError, match="the turns of a dialogue are asked together"):
        ask(model, history=True)
    assert model.asked == []


def test_refused_baselines(tmp_path):
    evaluate([Sample(id="s1", generated_answer="a", references=["a"])], metrics=["rouge_l"], output=tmp_path / "other")
    with pytest.raises(ConfigError, match=r"has no scores of exact_match. It has rouge_l"):
        ask(Model(), until={"better_than": str(tmp_path / "other")})
    answered = [Sample(id="z", generated_answer="a", expected_answer="a")]
    evaluate(answered, metrics=["exact_match"], output=tmp_path / "rule", options={"exact_match": {"rule": "none@1"}})
    with pytest.raises(ConfigError, match=r"exact_match is exact_match.*rule:none.* but exact_match.*in this run"):
        ask(Model(), until={"better_than": str(tmp_path / "rule")})
    evaluate(answered, metrics=["exact_match"], output=tmp_path / "none")
    with pytest.raises(ConfigError, match="no sample of the input is in the run none"):
        ask(Model(), until={"better_than": str(tmp_path / "none")})
    with pytest.raises(ConfigError, match="has 1 epochs, but this run 2"):
        ask(Model(), until={"better_than": str(tmp_path / "none")}, epochs=2)
    assert load_run(tmp_path / "none").outcome.n == 1
