"""The drop-in for pycocoevalcap."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.errors import InputError, UnavailableError
from multimodal_eval.evaluation.metrics.cider import cider_d
from multimodal_eval.interop.coco import COCOEvalCap, caption_scores
from tests.golden.load import golden


@pytest.fixture
def files(tmp_path):
    captions = golden("captions.json.gz")
    annotations = [
        {"image_id": 1000 + image, "id": 10 * image + number, "caption": text}
        for image, texts in enumerate(captions["references"])
        for number, text in enumerate(texts)
    ]
    images = [{"id": 1000 + image} for image in range(len(captions["candidates"]))]
    results = [{"image_id": 1000 + image, "caption": text} for image, text in enumerate(captions["candidates"])]
    (tmp_path / "annotations.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    (tmp_path / "results.json").write_text(json.dumps(results))
    return str(tmp_path / "annotations.json"), str(tmp_path / "results.json")


def check(evaluation):
    expected = golden("captions.json.gz")
    names = ["Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "ROUGE_L", "CIDEr"]
    assert list(evaluation.eval) == names
    scores = [*expected["corpus"]["bleu"], expected["corpus"]["rouge_l"], expected["corpus"]["cider_d"]]
    assert list(evaluation.eval.values()) == pytest.approx(scores, rel=1e-12)
    assert evaluation.imgToEval[1007]["CIDEr"] == expected["cider_d"][7]
    assert evaluation.imgToEval[1007]["Bleu_2"] == expected["bleu"][1][7]
    assert evaluation.imgToEval[1007]["image_id"] == 1007
    assert len(evaluation.evalImgs) == 400


def test_with_pycocotools_objects_as_in_pycocoevalcap(files, capsys):
    from pycocotools.coco import COCO

    coco = COCO(files[0])
    result = coco.loadRes(files[1])
    evaluation = COCOEvalCap(coco, result)
    evaluation.params["image_id"] = result.getImgIds()
    evaluation.evaluate()
    check(evaluation)
    score = golden("captions.json.gz")["corpus"]["cider_d"]
    assert f"CIDEr: {score:.3f}\n" in capsys.readouterr().out


def test_with_files_and_with_loaded_json(files, capsys):
    by_file = COCOEvalCap(*files)
    by_file.evaluate()
    check(by_file)
    loaded = COCOEvalCap(*(json.loads(Path(file).read_text()) for file in files))
    loaded.evaluate()
    assert loaded.imgToEval == by_file.imgToEval


def test_a_subset_takes_its_frequencies_from_the_subset(files, capsys):
    from tests.evaluation.metrics.test_caption_metrics import oracle

    captions = golden("captions.json.gz")
    evaluation = COCOEvalCap(*files)
    evaluation.params["image_id"] = [1001, 1002, 1003]
    evaluation.evaluate()
    _, _, _, cider = oracle(captions["candidate_tokens"][1:4], captions["reference_tokens"][1:4])
    assert [image["CIDEr"] for image in evaluation.evalImgs] == pytest.approx(cider, rel=1e-12)


def test_images_without_a_result_are_all_named():
    annotations = {"annotations": [{"image_id": i, "caption": "a dog"} for i in range(4)]}
    results = [{"image_id": 0, "caption": "x"}, {"image_id": 0, "caption": "y"}, {"image_id": 1, "caption": "z"}]
    with pytest.raises(InputError) as refused:
        COCOEvalCap(annotations, results).evaluate()
    assert [(p.code, p.id) for p in refused.value.problems] == [
        ("DUPLICATE", "0"),
        ("UNMATCHED", "2"),
        ("UNMATCHED", "3"),
    ]


@pytest.mark.parametrize(
    ("candidates", "references", "code"),
    [
        (["a"], [], "LENGTH"),
        ([], [], "EMPTY"),
        (["a", "b"], [["x"], []], "NO_REFERENCE"),
        (["a", None], [["x"], ["y"]], "TYPE"),
        (["a", "b"], [["x"], [3]], "TYPE"),
        (["a", "b"], ["x y", "z"], "TYPE"),
        (["a", "\ud800"], [["x"], ["y"]], "CONTROL_CHAR"),
    ],
)
def test_unfit_lists_are_refused(candidates, references, code):
    with pytest.raises(InputError, match=code):
        caption_scores(candidates, references)


def test_one_image_has_every_score_but_those_that_need_a_corpus(capsys):
    with pytest.warns(UserWarning, match="CIDEr left out: .* df='coco-val2014'"):
        scores = caption_scores(["a dog"], [["a dog runs"]])
    # ROUGE-L with beta 1.2: precision 1, recall 2/3: 2.44 (2/3) / (2/3 + 1.44)
    assert scores.corpus["ROUGE_L"] == pytest.approx(2.44 * (2 / 3) / (2 / 3 + 1.44))
    assert scores.corpus["Bleu_1"] == pytest.approx(np.exp(-0.5), abs=1e-6)  # both words, and the brevity penalty
    assert "CIDEr" not in scores.corpus
    assert "every weight would be 0" in scores.missing["CIDEr"]
    named = caption_scores(["a dog"], [["a dog runs"]], df="coco-val2014")
    assert named.corpus["CIDEr"] == cider_d("a dog", ["a dog runs"], df="coco-val2014")
    evaluation = COCOEvalCap([{"image_id": 1, "caption": "a dog runs"}], [{"image_id": 1, "caption": "a dog"}])
    evaluation.evaluate()
    assert evaluation.eval["ROUGE_L"] == scores.corpus["ROUGE_L"]
    assert "CIDEr is left out. " in capsys.readouterr().err


def test_intervals_end_at_the_bounds_of_their_scores():
    scores = caption_scores(["a dog", "a cat", "x y"], [["a dog"], ["a cat"], ["a cow"]], meteor=False)
    for name in scores.corpus:
        figure = scores.interval(name)
        assert 0 <= figure.low < figure.high <= (10 if name == "CIDEr" else 1), name


def test_threads_change_no_digit():
    captions = golden("captions.json.gz")
    single = caption_scores(captions["candidates"], captions["references"], threads=1)
    many = caption_scores(captions["candidates"], captions["references"], threads=5)
    assert single.corpus == many.corpus
    assert all((single.per_image[name] == many.per_image[name]).all() for name in single.per_image)


def test_repeated_ids_count_once(files, capsys):
    once, twice = COCOEvalCap(*files), COCOEvalCap(*files)
    once.params["image_id"] = [1001, 1002, 1003]
    twice.params["image_id"] = [1001, 1001, 1002, 1003]
    once.evaluate()
    twice.evaluate()
    assert twice.eval == once.eval


def test_results_for_images_that_are_not_annotated_are_refused():
    annotations = {"annotations": [{"image_id": i, "caption": f"a dog {i}"} for i in (1, 2)]}
    results = [{"image_id": i, "caption": "x"} for i in (1, 2, 3)]
    with pytest.raises(InputError, match=r"UNMATCHED.*'3'"):
        COCOEvalCap(annotations, results).evaluate()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("{", "SYNTAX"),
        ("[1]", "TYPE"),
        ('{"images": []}', "TYPE"),
        ('[{"image_id": 1}]', "TYPE"),
        ('[{"a": NaN}]', "SYNTAX"),
    ],
)
def test_files_without_captions(tmp_path, content, code):
    (tmp_path / "bad.json").write_text(content)
    with pytest.raises(InputError, match=code):
        COCOEvalCap(tmp_path / "bad.json", [])
    with pytest.raises(InputError, match="NOT_FOUND"):
        COCOEvalCap(tmp_path / "nowhere.json", [])


def test_values_per_sample_as_for_answers():
    # The candidate has the 2 words of the reference "a dog" and 1 of the 2 of "the cat".
    scores = caption_scores(["a dog", "a cat"], [["a dog"], ["the cat"]], meteor=False, spice=False)
    assert scores.per_sample["Bleu_1"] == pytest.approx([1, 1 / 2])


def test_more_threads_than_images():
    assert caption_scores(["a dog", "a cat"], [["a dog"], ["the cat"]], threads=5000).corpus["Bleu_1"] > 0


def test_meteor_is_scored_if_its_data_are_present(files, meteor_data, capsys):
    evaluation = COCOEvalCap(*files)
    evaluation.evaluate()
    expected = golden("captions.json.gz")
    assert list(evaluation.eval) == ["Bleu_1", "Bleu_2", "Bleu_3", "Bleu_4", "METEOR", "ROUGE_L", "CIDEr"]
    assert evaluation.eval["METEOR"] == expected["corpus"]["meteor"]
    assert evaluation.imgToEval[1007]["METEOR"] == expected["meteor"][7]
    assert "METEOR" not in capsys.readouterr().err


@pytest.mark.weights
def test_spice_and_spider_are_scored_if_the_parser_is_present(files, weights, capsys):
    evaluation = COCOEvalCap(*files)
    evaluation.evaluate()
    assert list(evaluation.eval)[-4:] == ["ROUGE_L", "CIDEr", "SPICE", "SPIDEr"]
    assert capsys.readouterr().err == ""
    image = evaluation.imgToEval[1007]
    assert image["SPIDEr"] == (image["SPICE"] + image["CIDEr"]) / 2
    assert 0 < evaluation.eval["SPICE"] < 1
    captions = golden("captions.json.gz")
    scores = caption_scores(captions["candidates"], captions["references"], spice=None)
    assert scores.corpus["SPICE"] == pytest.approx(evaluation.eval["SPICE"], abs=1e-3)  # tokens of lines may differ
    assert scores.interval("SPICE").low < scores.corpus["SPICE"] < scores.interval("SPICE").high
    assert "SPICE" not in caption_scores(captions["candidates"], captions["references"]).corpus  # also if it is there


def test_without_the_parser_spice_is_left_out_with_a_message(files, capsys):
    evaluation = COCOEvalCap(*files)
    evaluation.evaluate()
    assert "SPICE" not in evaluation.eval
    assert "SPIDEr" not in evaluation.eval
    assert "SPICE is left out." in (message := capsys.readouterr().err)
    assert "mmeval fetch en-core-web-sm" in message
    with pytest.raises(UnavailableError, match="mmeval fetch en-core-web-sm"):
        caption_scores(["a dog", "a cat"], [["a dog"], ["the cat"]], spice=True)


def test_without_meteors_data_the_message_says_how_to_get_them(files, capsys):
    evaluation = COCOEvalCap(*files)
    evaluation.evaluate()
    assert "METEOR" not in evaluation.eval
    assert "METEOR is left out." in (message := capsys.readouterr().err)
    assert "mmeval fetch meteor-1.5-en" in message
    with pytest.raises(UnavailableError, match="mmeval fetch"):
        caption_scores(["a dog", "a cat"], [["a dog"], ["the cat"]], meteor=True)


def test_every_corpus_score_has_an_interval(meteor_data, tmp_path):
    captions = golden("captions.json.gz")
    scores = caption_scores(captions["candidates"], captions["references"])
    for name, score in scores.corpus.items():
        interval = scores.interval(name)
        assert interval.value == pytest.approx(score, rel=1e-12)
        assert interval.low < score < interval.high
    samples = [
        {"id": str(i), "generated_answer": answer, "references": texts}
        for i, (answer, texts) in enumerate(zip(captions["candidates"], captions["references"], strict=True))
    ]
    run = evaluate(samples, metrics=["coco"], output=tmp_path / "run")
    for name, metric in (("Bleu_4", "bleu"), ("METEOR", "meteor"), ("ROUGE_L", "rouge_l"), ("CIDEr", "cider_d")):
        assert scores.interval(name).low == run[metric]["low"]


def test_the_end_of_a_caption_depends_on_the_next_as_in_the_java_tokenizer(capsys):
    # "K." before "A man" is "k" and a dropped full stop; before "a man" it is the token "k.". The candidates are the
    # lines of one file, all references those of another: the next line of a caption may be another image's.
    annotations = [
        {"image_id": 1, "caption": "a sign reads k"},
        {"image_id": 1, "caption": "the letter k."},
        {"image_id": 2, "caption": "A man walks"},
    ]
    results = [{"image_id": 1, "caption": "the letter K."}, {"image_id": 2, "caption": "A man walks"}]
    evaluation = COCOEvalCap({"annotations": annotations}, results)
    evaluation.evaluate()
    alone = caption_scores(["the letter k", "a man walks"], [["a sign reads k", "the letter k"], ["a man walks"]])
    assert evaluation.imgToEval[1]["CIDEr"] == alone.per_image["CIDEr"][0]
    assert evaluation.imgToEval[1]["ROUGE_L"] == 1.0
    single = caption_scores(["the letter K.", "A man walks"], [["a sign reads k", "the letter k"], ["A man walks"]])
    assert single.per_image["ROUGE_L"][0] < 1.0


def test_a_run_whose_headline_is_cider_says_what_papers_print():
    captions = golden("captions.json.gz")
    rows = [
        {"id": str(number), "generated_answer": answer, "references": references}
        for number, (answer, references) in enumerate(zip(captions["candidates"], captions["references"], strict=True))
    ]
    notes = {
        name: [note for note in evaluate(rows, metrics=[name], progress=False).outcome.notes if "papers print" in note]
        for name in ("cider", "cider_d")
    }
    assert notes["cider"] == [
        "cider: the cosine of tf-idf vectors, 0 to 1; coco-caption and papers print cider_d as CIDEr"
    ]
    assert notes["cider_d"] == []
