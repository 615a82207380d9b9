"""Judges in files and those of the package, and the messages about their faults."""

from __future__ import annotations

import pytest

from multimodal_eval import Sample, evaluate, resume
from multimodal_eval.cli.main import cli
from multimodal_eval.core.errors import ConfigError
from multimodal_eval.core.judge_config import JudgeModel
from multimodal_eval.judges.forms.by_name import FORMS, form_of, judges
from multimodal_eval.run.judging import read_judge
from tests.cli.command_line import called

SAMPLES = [Sample("1", question="What?", references=["a dog"], generated_answer="a dog")]


def said(request):
    """A judge without an opinion: its reply cannot be read."""
    return "Hm."


@pytest.fixture
def written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text, name="quality.yaml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return write


def fault(source):
    with pytest.raises(ConfigError) as caught:
        read_judge(source)
    return str(caught.value)


def test_a_judge_is_named_after_its_file(written):
    judge = read_judge(written("form: binary\nmodel: openai:m"))
    assert (judge.name, judge.form, judge.models) == ("quality", "binary", [JudgeModel(model="openai:m")])
    assert read_judge(written("name: other")).name == "other"


def test_several_models(written):
    text = "models:\n  - openai:a\n  - {model: vllm:b, base_url: http://localhost:8000/v1}"
    models = read_judge(written(text)).models
    assert models == [JudgeModel(model="openai:a"), JudgeModel(model="vllm:b", base_url="http://localhost:8000/v1")]


def test_the_template_is_read_beside_the_file(written, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "mine.md").write_text("Judge {{ answer }}")
    judge = read_judge(written("prompt: mine.md", "sub/judge.yaml"))
    assert (judge.prompt, judge.template) == ("mine.md", "Judge {{ answer }}")


def test_the_template_of_a_judge_in_a_configuration_is_read_once(written, tmp_path):
    written("Judge {{ answer }}", "mine.md")
    config = {"metrics": ["short"], "judges": {"short": {"prompt": "mine.md"}}}
    run = evaluate(SAMPLES, config=config, judge=said, allow_empty=True, output=tmp_path / "run")
    assert run.info.config.judges["short"].template == "Judge {{ answer }}"
    (tmp_path / "mine.md").unlink()
    (tmp_path / "run" / "scores" / "part-00000.parquet").unlink()
    assert resume(tmp_path / "run", judge=said, allow_empty=True).info.config.judges == run.info.config.judges
    with pytest.raises(ConfigError, match=r"the template other\.md cannot be read"):
        evaluate(SAMPLES, config={"metrics": ["short"], "judges": {"short": {"prompt": "other.md"}}}, judge=said)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a judge must be a section with keys, such as `form: scale`. Got nothing instead."),
        ("- a", "a judge must be a section with keys, such as `form: scale`. Got ['a'] instead."),
        ("form: skale", "`form` must be 'scale' or 'binary' or 'rubric'"),
        ("forn: scale", "no setting is named 'forn'. Did you mean 'form'? Known: baseline,"),
        ("show: [questions]", "`show[0]` must be 'question' or 'media' or 'references' or 'choices'. Got 'questions'"),
        ("show: question", "`show` must be a list. Got 'question' instead. Write it in brackets: [question]"),
        ("criteria: [{name: a}]", "`criteria[0]` needs the key `question`"),
        (
            "criteria: [{nam: a}]",
            "no setting is named 'nam'. Did you mean 'name'? Known: name, question, scale, weight",
        ),
        ("scale: [1]", "`scale` must be a list of 2 values. Got 1 instead."),
        ("scale: [1, 5.5]", "`scale[1]` must be a whole number. Got 5.5 instead."),
        ("scale: [5, 1]", "`scale` must be the lowest and the highest number, such as [1, 5]. Got [5, 1] instead."),
        ("scale: [0, 5000]", "`scale` must not have more than 1,000 values"),
        (
            "models: [openai:m, openai:n, openai:m]",
            "the model 'openai:m' is in the panel twice. To ask one model several",
        ),
        ("form: rubric", "a rubric needs `criteria`: a list with a `name` and a `question` each"),
        ("criteria: [{name: a, question: b}]", "only a rubric has `criteria`. Write `form: rubric` instead of 'scale'"),
        ("form: rubric\ncriteria: [{name: reason, question: b}]", "'reason' cannot name a criterion"),
        ("form: rubric\ncriteria: [{name: a b, question: b}]", "'a b' cannot name a criterion"),
        ("form: rubric\ncriteria: [{name: a, question: b}, {name: a, question: c}]", "'a' occurs twice"),
        ("form: rubric\ncriteria: [{name: a, question: b, weight: 0}]", "no criterion has a `weight` above 0"),
        ("form: rubric\ncriteria: [{name: a, question: b, weight: -1}]", "`criteria[0].weight` must be a number, at "),
        ("form: rubric\ncriteria: [{name: a, question: b, scale: [2, 2]}]", "`criteria.a.scale` must be the lowest"),
        ("form: binary\norders: given", "`orders` is a setting of the forms pairwise and listwise, but this judge has"),
        ("form: binary\nscale: [1, 7]", "the forms scale and rubric, but this judge has the form binary. Leave it out"),
        ("baseline: other", "`baseline` is a setting of the forms pairwise and listwise"),
        ("form: listwise\nskip_identical: true", "`skip_identical` is a setting of the form pairwise, but this judge"),
        (
            "form: listwise\nexpected: true",
            "`expected` is a setting of the forms scale, binary, rubric, clair, fleur and ",
        ),
        ("form: extract\nquestion: Why?", "`question` is a setting of the forms scale, binary, rubric, clair, fleur, "),
        ("repeats: 0", "`repeats` must be a whole number, at least 1. Got 0 instead."),
        ("combine: majority\nexpected: true", "`combine: majority` counts equal verdicts"),
        ("model: a\nmodels: [b]", "write `model` for one model, or `models` for several, and not both"),
        ("parameters: {temperatur: 1}", "no setting is named 'temperatur'. Did you mean 'temperature'?"),
        ("template: x", "`template` is set by the program. Name the file of your template in `prompt`"),
        ("form: scale\nform: binary", "the key 'form' occurs twice, in lines 1 and 2"),
    ],
)
def test_faults_in_plain_words(written, text, message):
    problem = fault(written(text))
    assert problem.startswith("quality.yaml: ")
    assert message in problem


def test_faults_of_files(written, tmp_path):
    assert fault("no.yaml") == "the judge no.yaml cannot be read: No such file or directory"
    assert "the template no.md cannot be read: No such file" in fault(written("prompt: no.md"))
    (tmp_path / "bad.md").write_text("How good?")
    assert "the template bad.md does not show what is judged" in fault(written("prompt: bad.md"))
    (tmp_path / "bytes.md").write_bytes(b"\xff")
    assert "the template bytes.md cannot be read: it is not text in UTF-8" in fault(written("prompt: bytes.md"))
    (tmp_path / "long.md").write_text("x" * 400_001)
    assert "the template long.md is larger than 400,000 bytes" in fault(written("prompt: long.md"))


def test_the_template_is_in_the_folder_of_the_file(written, tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "good.md").write_text("How good is {{ answer }}?")
    (tmp_path / "inner" / "judge.yaml").write_text("prompt: ../good.md")
    with pytest.raises(ConfigError, match="`prompt` must be in the folder of the judge's file"):
        read_judge("inner/judge.yaml")
    assert read_judge("inner/judge.yaml", allow_outside=True).template == "How good is {{ answer }}?"


def test_a_wrong_name_of_a_built_in_judge():
    known = "Known: " + ", ".join(judges()) + ". The file of your own judge ends in .yaml"
    assert fault("clar") == f"no judge is named 'clar'. Did you mean 'clair'? {known}"
    assert "no judge is named ''" in fault("")


@pytest.mark.parametrize("name", judges())
def test_the_built_in_judges_work(name):
    judge = read_judge(name)
    assert (judge.name, judge.models, judge.template) == (name, [], None)
    assert form_of(judge).needs[0] == "generated_answer"
    assert judge.form in FORMS


def test_what_the_built_in_judges_decide():
    forms = {name: read_judge(name).form for name in judges()}
    assert forms == {
        "caparena": "pairwise",
        "caption": "rubric",
        "clair": "clair",
        "correctness": "binary",
        "fleur": "fleur",
        "helpfulness": "scale",
        "preference": "pairwise",
        "ref_fleur": "fleur",
    }
    assert form_of(read_judge("correctness")).needs == ("generated_answer", "references")
    assert "references" not in read_judge("helpfulness").show
    assert "media" not in read_judge("clair").show
    assert read_judge("fleur").expected
    assert read_judge("ref_fleur").expected
    assert read_judge("fleur").show == ("media",)
    assert form_of(read_judge("ref_fleur")).needs == ("generated_answer", "image", "references")
    names = [criterion.name for criterion in read_judge("caption").criteria]
    assert names == ["accuracy", "detail", "hallucination", "fluency"]


def test_judges_among_the_metrics(written):
    written("form: binary\nmodel: openai:m")
    config = evaluate(
        SAMPLES, metrics="judge:quality.yaml,exact_match,judge:clair", judge=said, allow_empty=True
    ).info.config
    assert config.metrics == ["quality", "exact_match", "clair"]
    assert {name: judge.form for name, judge in config.judges.items()} == {"quality": "binary", "clair": "clair"}


def test_two_judges_with_one_name_are_refused(written):
    written("form: scale", "clair.yaml")
    with pytest.raises(ConfigError, match=r"two judges have the name 'clair'\. Write another `name` into one"):
        evaluate(SAMPLES, metrics="judge:clair.yaml,judge:clair", judge=said)


def test_a_name_that_cannot_name_a_metric(written):
    written("form: scale", "my judge.yaml")
    with pytest.raises(ConfigError, match="'my judge' cannot name a metric"):
        evaluate(SAMPLES, metrics="judge:my judge.yaml", judge=said)


def test_the_list_of_judges():
    listed = called("ls", "judges").stdout
    for name, about in judges().items():
        assert f"judge:{name}" in listed
        assert about.split()[0] in listed
        assert about.endswith(".")
    assert "judge:NAME" in called("ls", "metrics").stdout
    assert cli.commands["ls"].commands["judges"].help


def test_the_card_of_a_judge(written):
    shown = called("card", "judge:correctness").stdout
    assert shown.startswith("# Whether an answer agrees with the references")
    assert "# Range: 0 to 1. Needs: generated_answer, references." in shown
    assert "ANSWER\n</answer" in shown
    assert 'Reply with JSON only: {"verdict": …}' in shown
    written("form: scale\nquestion: Is it short?\nsystem: Be strict.")
    shown = called("card", "judge:quality.yaml").stdout
    assert "question: Is it short?" in shown
    assert "[system]\nBe strict.\n[user]\n<image>\nYou judge the answer of a model. Is it short?" in shown
    failed = called("card", "judge:clar")
    assert failed.returncode == 1
    assert "no judge is named 'clar'" in failed.stderr
