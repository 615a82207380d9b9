"""The public test kit: our own parts pass it, and every planted fault is named with what to do about it."""

from __future__ import annotations

import asyncio
import copy
import doctest
import itertools
import shutil
import threading
from pathlib import Path

import msgspec
import pytest

import multimodal_eval.benchmarks
from multimodal_eval import Answer, Estimate, Metric, Reading, RetryableError, Sample, Score, metric, rule, testing
from multimodal_eval.core.rules import families, find_rule, rules_of
from multimodal_eval.data.logs.log_format import LogInfo, RecordedScore
from multimodal_eval.data.logs.recognised import LOG_FORMATS, recognised
from multimodal_eval.generate.protocol import RejectedError
from multimodal_eval.testing import check_metric, check_provider, check_reader, check_recipe, check_rule
from tests.data.logs.fixture_logs import FIXTURES

OURS = Path(multimodal_eval.benchmarks.__file__).parent
SAMPLES = [
    Sample("1", generated_answer="a red dog", references=["a dog"]),
    Sample("2", generated_answer="two cats", references=["two cats sleep"]),
    Sample("3", generated_answer="a", references=["a train"]),
]
COUNT = itertools.count()


def test_the_example_of_the_module_runs():
    assert doctest.testmod(testing).failed == 0


# Metrics


def share(sample):
    """The share of the answer's words that are in the first reference: 2/3, 1 and 1 for SAMPLES."""
    words = (sample.generated_answer or "").split()
    return sum(word in sample.references[0].split() for word in words) / len(words) if words else 0.0


def lucky(sample):
    return share(sample) / (1 + next(COUNT))


def unlimited(sample):
    return len(sample.generated_answer.split()) * 1.0


def crashes(sample):
    return share(sample) if sample.generated_answer.isascii() else 1 / 0


def rewards(sample):
    return share(sample) if sample.generated_answer.strip() else 0.5


def constant(sample):
    return 0.5


class Words(list[str]):
    """Statistics that depend on the order of their parts."""

    def __add__(self, other):
        return Words([*other, *self])


def changing(sample):
    sample.references.append("more")
    return share(sample)


def fitting(sample, *, corpus):
    return share(sample)


FAULTY_METRICS = {
    "draws": (lucky, {}, "scores .*, and .* alone. A score must depend on the sample .*draw nothing"),
    "bounds": (unlimited, {"bounds": (0, 1)}, "the sample '1' has no score .*3.0.*Pass samples that the metric scores"),
    "crash": (crashes, {}, "the answer .* is an error: ZeroDivisionError.*Give every text a value within the bounds"),
    "blank": (
        rewards,
        {"bounds": (0, 1)},
        r"a blank answer to the sample '1' gets 0.5, but the worst value is 0. Return that, or declare blank=0",
    ),
    "endless": (lambda sample: 1 / (1 + len(sample.generated_answer.strip())), {}, "a blank answer gets 1.0.*blank=…"),
    "changing": (changing, {}, "it changes its samples, which other metrics get, too. Make a copy"),
    "constant": (constant, {}, "all samples have the value 0.5. Pass samples with different values"),
    "needless": (
        lambda sample: float(len((sample.generated_answer or "").split())),
        {"needs": ()},
        r"a sample without fields gets 0.0 \(ok\). Declare every field that it reads in `needs`",
    ),
    "unordered": (
        fitting,
        {"corpus": lambda samples: Words(sample.id for sample in samples)},
        "statistics of two parts do not add up to those of the whole. `\\+` must give",
    ),
    "influence": (
        share,
        {"aggregate": lambda rows: Estimate(0.5, rows.values[:2])},
        "gives 2 influence values for 3 rows. Intervals need one per row: see `multimodal_eval.stats",
    ),
    "biased": (share, {"aggregate": lambda rows: Estimate(0.5, rows.values)}, "influence values .* do not sum to 0"),
}


@pytest.mark.parametrize("fault", FAULTY_METRICS)
def test_a_fault_of_a_metric_is_named(fault):
    function, settings, message = FAULTY_METRICS[fault]
    settings = {"needs": ("generated_answer", "references"), "version": "1", **settings}
    faulty = metric(f"faulty_{fault}", **settings)(function)
    with pytest.raises(AssertionError, match=f"(?s)^faulty_{fault}: .*{message}"):
        check_metric(faulty, copy.deepcopy(SAMPLES))


def test_a_metric_whose_signature_changes_is_named():
    class Unstable(Metric):
        """The share of words."""

        name, needs, bounds = "unstable", ("generated_answer", "references"), (0, 1)

        def settings(self, state):
            return {"call": str(next(COUNT))}

        def open(self, state):
            return self

        def score(self, batch):
            return [Score(share(sample)) for sample in batch]

    with pytest.raises(AssertionError, match=r"^unstable: its signature differs the second time"):
        check_metric(Unstable(), SAMPLES)


def test_a_metric_that_threads_may_not_share_is_named():
    opened = threading.local()
    opened.connection = {"a"}  # which the other threads do not see

    def connected(sample):
        return share(sample) if opened.connection else 0.0

    faulty = metric("connected", needs=("generated_answer", "references"), version="1", placement="thread")(connected)
    with pytest.raises(AssertionError, match=r'scores differ if several threads share.*placement="process"'):
        check_metric(faulty, SAMPLES)


def test_what_is_not_a_metric_is_refused():
    cases = [
        (
            share,
            SAMPLES,
            "check_metric takes a metric, which @metric and `register` return, or its name. Got <function",
        ),
        ("cidr", SAMPLES, "check_metric: no metric is named 'cidr'. Did you mean 'cider'"),
        ("cider", SAMPLES[:1], "cider: check_metric needs two samples or more. Got 1 with generated_answer"),
    ]
    for given, samples, message in cases:
        with pytest.raises(AssertionError) as refused:
            check_metric(given, samples)
        assert str(refused.value).startswith(message)


def test_a_metric_is_checked_by_the_samples_of_the_kit():
    for ours in (
        "rouge_l",
        "cider_d",
        "multiple_choice",
        "yes_no",
        "iou",
        "f1_majority",
        "soft_score",
        "hidden_metric",
    ):
        check_metric(ours)
    needs_more = metric("dated", needs=("generated_answer", "metadata.date"), version="1")(share)
    with pytest.raises(AssertionError) as refused:
        check_metric(needs_more)
    assert str(refused.value).startswith(
        "dated: check_metric needs two samples or more. Got 0 with generated_answer, metadata.date. Pass more: "
    )
    with pytest.raises(AssertionError, match=r"crash_alone: .*ZeroDivisionError"):
        check_metric(metric("crash_alone", needs=("generated_answer", "references"), version="1")(crashes))


# Rules


def test_our_own_rules_keep_the_contract():
    assert [check_rule(name, family) for family in families() for name in rules_of(family)]
    check_rule("mmeval@1")  # of several families
    check_rule(find_rule("anls", "anls@2019").function)


def test_cases_of_a_rule():
    check_rule("mmeval@1", "choice", {"It is B.": "B", "I do not know": None})
    check_rule("anls@2019", "anls", [(("a dog", "a dog"), 1.0), (("a dog", "xyz"), 0.0)])
    with pytest.raises(AssertionError) as refused:
        check_rule("mmeval@1", "choice", {"It is B.": "A"})
    assert str(refused.value) == "mmeval@1 (choice): it gives 'B' for 'It is B.'. Expected 'A'"
    with pytest.raises(AssertionError, match=r"cases are for one family. Pass one of .*choice"):
        check_rule("mmeval@1", cases={"It is B.": "B"})


def changed(answer, options):
    """Removes the first option."""
    options.pop("A")
    return Reading()


def shout(answer):
    """In upper case."""
    return answer.upper()


FAULTY_RULES = {
    "choice": [
        (lambda answer, options: answer[:1], "it must return a Reading with one of the letters. Got ''"),
        (lambda answer, options: Reading("Z"), r"it must return .*Got Reading\(choice='Z'"),
        (
            lambda answer, options: Reading(list(options)[next(COUNT) % 3]),
            "in two ways. A rule may not draw: .*among=…",
        ),
        (changed, "it changes its arguments, which other rules get, too. Make a copy"),
    ],
    "anls": [
        (lambda answer, reference: float(len(answer)), "it must return a number from 0 to 1. Got 2.0"),
        (
            lambda answer, reference: 1 / len(answer),
            "it fails on the answer ''. A rule accepts any text.*ZeroDivisionError",
        ),
    ],
    "loudness": [(lambda answer: answer.upper(), "the family 'loudness' is not one of this package. Pass cases")],
}


def test_a_fault_of_a_rule_is_named():
    for family, faults in FAULTY_RULES.items():
        for number, (function, message) in enumerate(faults):
            name = f"faulty@{number}"
            function.__doc__ = "A rule."
            rule(family, name, origin="this test")(function)
            with pytest.raises(AssertionError, match=message):
                check_rule(function, family)
    with pytest.raises(AssertionError, match=r"is not a rule of anls. Register it: @rule\('anls', …\)"):
        check_rule(share, "anls")
    with pytest.raises(AssertionError, match=r"is not a rule. Register it: @rule\(FAMILY, …\)"):
        check_rule(share)
    with pytest.raises(AssertionError, match=r"check_rule: no rule is named 'mmeval@0'. Did you mean 'mmeval@1'"):
        check_rule("mmeval@0")
    rule("answer_text", "shout@1", origin=" ")(shout)
    with pytest.raises(AssertionError, match=r"shout@1 \(answer_text\): it has no `origin`. Say in words where"):
        check_rule("shout@1", "answer_text")


# Readers


def test_our_own_readers_keep_the_contract():
    files = {}  # the smallest file of each format and suffix
    for path in sorted(FIXTURES.rglob("*.*"), key=lambda path: path.stat().st_size):
        if path.is_file() and (format_ := recognised(path)) is not None:
            files.setdefault((format_.name, path.suffix), path)
    for (name, _), path in files.items():
        check_reader(name, path)
        check_reader(name)
    assert {name for name, _ in files} == {*LOG_FORMATS}


class Lines:
    """A format of one answer per line, after a first line `#answers`."""

    name = harness = "lines"
    suffixes = (".txt",)
    files = takes = "any"

    def recognises(self, head):
        return head.data.startswith(b"#answers")

    def part_name(self, path):
        return path.stem

    def records(self, path, problems):
        lines = path.read_bytes().decode(errors="replace").splitlines()
        for number, line in enumerate(lines[1:], 2):
            yield number, {"id": str(number), "generated_answer": line, "lines.length": len(line)}

    def info(self, path):
        return LogInfo("lines", scores=(RecordedScore("lines.length"),))


def with_fault(**members):
    return type("Faulty", (Lines,), members)()


FAULTY_READERS = [
    (with_fault(suffixes=(".log",)), "lines: its `suffixes` lack '.txt', which answers.txt has"),
    (with_fault(recognises=lambda self, head: False), "lines: it does not recognise answers.txt"),
    (with_fault(records=lambda self, path, problems: iter(())), "it reads 0 samples .* Pass an undamaged file"),
    (with_fault(records=lambda self, path, problems: iter([{"id": 1}])), "`records` fails|not enough values"),
    (
        with_fault(records=lambda self, path, problems: iter([(1, {"id": next(COUNT)})])),
        "it reads a file differently the second time",
    ),
    (with_fault(info=lambda self, path: {}), r"`info` must return a LogInfo. Got \{\}"),
    (
        with_fault(info=lambda self, path: LogInfo("lines", scores=(RecordedScore("length"),))),
        "the score 'length' must be named lines.NAME: use `score_column`",
    ),
    (
        with_fault(info=lambda self, path: LogInfo("lines", scores=(RecordedScore("lines.size"),))),
        "`info` names the score 'lines.size', which no sample has",
    ),
    (
        with_fault(info=lambda self, path: LogInfo(path.read_text(encoding="utf-8"))),
        "`info` fails on the file with other bytes at .*UnicodeDecodeError.*problems.add",
    ),
]


def test_a_fault_of_a_reader_is_named(tmp_path):
    path = tmp_path / "answers.txt"
    path.write_text("#answers\na dog\ntwo cats\n", encoding="utf-8")
    check_reader(Lines(), path)
    for reader, message in FAULTY_READERS:
        with pytest.raises(AssertionError, match=message):
            check_reader(reader, path)
    with pytest.raises(AssertionError, match=r"the reader object: it has no `\w+`. See LogFormat\n- "):
        check_reader(object(), path)
    crashing = with_fault(records=lambda self, path, problems: iter([(1, {"id": path.read_text()[9]})]))
    with pytest.raises(AssertionError, match=r"lines: `records` fails on the file .*IndexError.*problems.add"):
        check_reader(crashing)
    logs = tmp_path / "answers.jsonl"
    logs.write_text("#answers\na dog\n", encoding="utf-8")
    every = with_fault(suffixes=(".jsonl",), recognises=lambda self, head: True)
    with pytest.raises(AssertionError, match=r"it takes .* for a file of its format. Look for what only this format"):
        check_reader(every, logs)


# Recipes


def test_a_fault_of_a_recipe_is_named(tmp_path):
    check_recipe("blink-val")
    shutil.copytree(OURS / "blink-val", tmp_path / "mine")
    file, goldens = tmp_path / "mine" / "recipe.yaml", tmp_path / "mine" / "goldens.jsonl"
    text, lines = file.read_text(encoding="utf-8"), goldens.read_text(encoding="utf-8").splitlines()
    file.write_text(text.replace("licence: Apache-2.0\ncitation", "citation"), encoding="utf-8")
    with pytest.raises(AssertionError, match=r"recipe.yaml: the key `licence` is missing"):
        check_recipe(tmp_path / "mine")
    file.write_text(text, encoding="utf-8")
    right = [line for line in lines if msgspec.json.decode(line)["value"] == 1]
    goldens.write_text("\n".join(right), encoding="utf-8")
    with pytest.raises(AssertionError, match=r"goldens.jsonl: all goldens have one value. Add answers that are wrong"):
        check_recipe(tmp_path / "mine")
    goldens.write_text("\n".join(lines).replace('"value":1', '"value":0').replace('"value": 1', '"value": 0'))
    with pytest.raises(AssertionError, match=r"goldens.jsonl: .* 1\.0 instead of 0.*\n- "):
        check_recipe(tmp_path / "mine")
    with pytest.raises(AssertionError, match=r"check_recipe: no benchmark is named 'blink'. Did you mean"):
        check_recipe("blink")
    with pytest.raises(AssertionError, match=r"nothing is not a recipe: a recipe is a folder with recipe.yaml"):
        check_recipe(tmp_path / "nothing")


# Providers


class Model:
    """Answers with the number of letters of the prompt."""

    label = "letters"

    async def answer(self, request):
        return Answer(str(len(request.prompt)))


def model(answer, **members):
    async def asked(self, request):
        return answer(request)

    return type("Faulty", (Model,), {"answer": asked, **members})()


def failing(error):
    def answer(request):
        raise error

    return answer


FAULTY_PROVIDERS = [
    (model(lambda request: "text"), "letters: the generator letters must return an Answer. Got 'text' instead"),
    (type("Sync", (Model,), {"answer": lambda self, request: Answer("a")})(), "must have an asynchronous method"),
    (model(failing(KeyError("choices"))), "for a question it raises KeyError: 'choices'. Raise RejectedError if"),
    (model(failing(RejectedError("too long"))), "it answers none of 7 requests: too long"),
    (model(failing(RetryableError("busy"))), "it answers none of 7 requests: busy"),
    (model(lambda request: Answer("a", finish="eos")), "`finish` is 'eos'. It must be one of stop, length"),  # type: ignore[arg-type]
    (model(lambda request: Answer("a", logprobs=[0.5])), "`logprobs` must be logarithms of probabilities, at most 0"),
    (model(lambda request: Answer("a", output_tokens=-1)), "`output_tokens` must be a number of tokens. Got -1"),
    (model(lambda request: Answer("a", logprobs=[-1.0], tokens=[])), "there are 0 `tokens` and 1 `logprobs`"),
    (model(lambda request: Answer(b"a")), "the answer to a question differs after it was stored"),  # type: ignore[arg-type]
    (model(lambda request: Answer("\ud800")), "the answer to a question cannot be stored"),
    (
        model(lambda request: Answer(request.id), is_cacheable=True),
        "it declares `is_cacheable`, but answers equal requests differently",
    ),
    (model(lambda request: Answer("a"), label=" "), "Faulty: `label` must be a text. Got ' '"),
    (object(), "check_provider: the generator 'object' must have a `label`"),
    ("opnai:gpt", "check_provider: no provider is named 'opnai'. Did you mean 'openai'"),
]


def test_a_fault_of_a_provider_is_named():
    for ours in ("echo", Model()):
        check_provider(ours)
    for generator, message in FAULTY_PROVIDERS:
        with pytest.raises(AssertionError, match=message):
            check_provider(generator)


def test_a_provider_that_works_in_one_event_loop_is_named():
    class Locked(Model):
        def __init__(self):
            self.lock = None

        async def answer(self, request):
            self.lock = self.lock or asyncio.Lock()
            async with self.lock:
                await asyncio.sleep(0)
            return Answer("a")

    with pytest.raises(AssertionError, match=r"it fails in a second event loop: .*Make clients and locks inside"):
        check_provider(Locked())
