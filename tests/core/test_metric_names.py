"""Other programs' names of metrics."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.metric import metric_and_part
from multimodal_eval.core.metric_names import ALIASES, JUDGES, NOT_HERE, metric_advice
from multimodal_eval.evaluation.metrics_registry import get_metric, list_available
from multimodal_eval.judges.forms.by_name import judges


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CIDEr", "Did you mean 'cider_d' (what coco-caption and papers print as CIDEr, 0 to 10) or 'cider'"),
        ("Bleu_4", "Did you mean 'bleu' (BLEU-4"),
        ("METEOR", "Did you mean 'meteor'"),
        ("ROUGE-L", "Did you mean 'rouge_l'"),
        ("rouge l", "Did you mean 'rouge_l'"),
        ("CLIPScore", "Did you mean 'clipscore' (as Hessel et al. define it, 0 to 2.5) or 'clip_score'"),
        ("VQA-Accuracy", "Did you mean 'vqa_accuracy'?"),
        ("SPIDEr", "Did you mean 'spider' (the mean of SPICE and CIDEr-D)?"),
        ("TIGEr", "TIGEr is not here: it needs a grounding model. The nearest here: 'ref_clipscore'."),
        ("MoverScore", "MoverScore is not here: "),
        ("BERT-Score", "Did you mean 'bertscore' (its F1; precision and recall are its parts)?"),
        ("BLEURT", "The nearest here: 'semantic_similarity'."),
        ("fid", "FID is not here: it scores generated images, and this package scores text. Known: acc_at_iou"),
        ("clair", "Did you mean 'judge:clair' (by the references alone)? It asks a model: --judge PROVIDER:NAME."),
        ("llm-as-a-judge", "Did you mean 'judge:helpfulness' (or another of `mmeval ls judges`)?"),
        ("cidr", "Did you mean 'cider'? Known: acc_at_iou, "),
        ("xyz", "no metric is named 'xyz'. Known: acc_at_iou, "),
    ],
)
def test_an_unknown_metric_is_explained(name, message):
    with pytest.raises(UnknownNameError) as unknown:
        get_metric(name)
    assert message in str(unknown.value)
    assert str(pickle.loads(pickle.dumps(unknown.value))) == str(unknown.value)


def test_only_known_metrics_are_suggested():
    assert metric_advice("CIDEr", ["cider", "bleu"]) == "Did you mean 'cider' (the formula of the CIDEr paper, 0 to 1)?"
    assert metric_advice("CIDEr", ["bleu"]) is None
    assert metric_advice("TIGEr", ["bleu"]) == "TIGEr is not here: it needs a grounding model."


def test_the_file_of_a_judge_needs_its_prefix():
    message = "Did you mean 'judge:sub/good.yaml', a judge that this file declares?"
    assert metric_advice("sub/good.yaml", ["bleu"]) == message


def test_other_kinds_of_names_are_not_metrics():
    assert "TIGEr" not in str(UnknownNameError("task", "tiger", ["captioning"]))
    assert "Did you mean 'captioning'?" in str(UnknownNameError("task", "CAPTIONING", ["captioning"]))


@given(st.sampled_from([*ALIASES, *JUDGES, *NOT_HERE]), st.randoms())
def test_case_and_separators_do_not_matter(name, random):
    changed = "".join(random.choice([c.lower(), c.upper()]) for c in name).replace("-", random.choice(["", "_", "-"]))
    assert metric_advice(changed, list_available()) == metric_advice(name, list_available())


def test_the_tables_name_metrics_that_exist():
    suggested = {metric for metrics in ALIASES.values() for metric in metrics}
    suggested |= {metric for nearest, _ in NOT_HERE.values() for metric in nearest}
    assert suggested <= set(list_available())
    assert not set(NOT_HERE) & set(ALIASES)
    named = {name.removeprefix("judge:") for name, _ in JUDGES.values()}
    assert named - {"FILE.yaml"} <= set(judges())


@pytest.mark.parametrize(
    ("name", "metric", "part"),
    [
        ("bleu", "bleu", ""),
        ("bleu.bleu_1", "bleu", "bleu_1"),
        ("lm-eval.acc", "lm-eval.acc", ""),
        ("lm-eval.acc.a.b", "lm-eval.acc", "a.b"),
        ("unknown", "unknown", ""),
        ("unknown.a.b", "unknown", "a.b"),
    ],
)
def test_the_metric_and_the_part_in_a_name(name, metric, part):
    assert metric_and_part(name, ["bleu", "lm-eval.acc"]) == (metric, part)
