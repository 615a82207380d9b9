"""Sets of samples: by id, and only those that are answered."""

from __future__ import annotations

import json

import pytest

from multimodal_eval import evaluate
from multimodal_eval.core.errors import ConfigError, InputError
from multimodal_eval.interop.coco import COCOEvalCap
from tests.golden.load import golden


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, captions = tmp_path_factory.mktemp("coco"), golden("captions.json.gz")
    images = range(len(captions["candidates"]))
    annotations = [{"image_id": i, "id": i, "caption": text} for i in images for text in captions["references"][i]]
    results = [{"image_id": i, "caption": captions["candidates"][i]} for i in images if i % 2]
    (folder / "annotations.json").write_text(json.dumps({"annotations": annotations, "images": []}))
    (folder / "results.json").write_text(json.dumps(results))
    (folder / "ids.txt").write_text("".join(f"{entry['image_id']}\n" for entry in results))
    return folder / "annotations.json", folder / "results.json", folder / "ids.txt"


def test_a_subset_has_the_scores_of_coco_caption_over_the_images_with_results(files):
    annotations, results, ids = files
    settings = {"metrics": ["bleu", "rouge_l", "cider_d"], "progress": False, "skip_lint": True}
    answered = evaluate(annotations, results, only_answered=True, **settings)
    chosen = evaluate(annotations, results, ids=str(ids), **settings)
    evaluation = COCOEvalCap(annotations, results)
    evaluation.params["image_id"] = [entry["image_id"] for entry in json.loads(results.read_text())]
    evaluation.evaluate()
    for run in (answered, chosen):
        values = {name: run[name]["value"] for name in ("bleu", "bleu_1", "rouge_l", "cider_d")}
        assert list(values.values()) == [evaluation.eval[name] for name in ("Bleu_4", "Bleu_1", "ROUGE_L", "CIDEr")]
        assert run.entries["cider_d"].is_complete
    assert answered.entries["cider_d"].signed.endswith("|answered:only")
    assert f"|ids:{len(chosen)}@" in chosen.entries["cider_d"].signed
    partial = evaluate(annotations, results, allow_partial=True, **settings)
    assert partial["cider_d"]["value"] != answered["cider_d"]["value"]  # its frequencies count all images
    with pytest.raises(InputError, match=r"have no prediction \(first: '0', '2'.* or --only-answered"):
        evaluate(annotations, results, **settings)


def test_ids_that_are_not_there_are_named(files, tmp_path):
    path = tmp_path / "ids.json"
    path.write_text("[1, 3, 999999]")
    with pytest.raises(InputError, match=r"1 of the 3 ids that were chosen are not in .*first: '999999'"):
        evaluate(files[0], files[1], ids=str(path), metrics=["rouge_l"])
    with pytest.raises(ConfigError, match="both choose samples"):
        evaluate(files[0], files[1], ids=[1], limit=2)
    with pytest.raises(ConfigError, match="one id per line, or a JSON list"):
        evaluate(files[0], files[1], ids=str(tmp_path / "missing"))
    with pytest.raises(ConfigError, match="there are no PREDICTIONS"):
        evaluate(files[0], only_answered=True, metrics=["rouge_l"])
    with pytest.raises(ConfigError, match="choose those in memory before the call"):
        evaluate([{"id": 1, "references": ["a"], "generated_answer": "a"}], ids=[1], metrics=["rouge_l"])


def test_a_single_file_is_restricted_too_and_titles_say_so(tmp_path):
    path = tmp_path / "answers.jsonl"
    rows = [{"id": i, "references": ["yes"], "generated_answer": "yes" if i else "no"} for i in range(6)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = evaluate(path, ids=[0, 1], metrics=["exact_match"], progress=False)
    assert (len(run), run["exact_match"]["value"]) == (2, 0.5)
    assert "Run of 2 samples (--ids)" in repr(run)
    limited = evaluate(path, limit=3, metrics=["exact_match"], progress=False)
    assert "Run of 3 samples (--limit 3)" in repr(limited)
    assert limited["exact_match"]["signature"].endswith("|limit:3")
