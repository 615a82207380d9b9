"""VLMEvalKit, from its package ms-vlmeval: the caption dataset's evaluation, and the rules of its other datasets."""

from __future__ import annotations

from typing import Any

from partial_packages import without_init

PACKAGES = ("ms-vlmeval", "pycocoevalcap")


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    without_init("vlmeval", "vlmeval.dataset")
    import pandas as pd
    from vlmeval.dataset.image_caption import ImageCaptionDataset
    from vlmeval.smp import dump

    rows = zip(data["candidates"], map(repr, data["references"]), strict=True)
    table = pd.DataFrame(rows, columns=["prediction", "answer"])
    table.insert(0, "index", range(len(table)))
    dump(table, "model_COCO_VAL.xlsx")
    scores = ImageCaptionDataset.evaluate("model_COCO_VAL.xlsx")
    named = {f"BLEU-{number}": value / 100 for number, value in enumerate(scores["Bleu"], 1)}
    return {"VLMEvalKit (`ms-vlmeval`)": {**named, "ROUGE-L": scores["ROUGE_L"] / 100, "CIDEr": scores["CIDEr"] / 100}}


def answers(data: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    without_init("vlmeval", "vlmeval.dataset", "vlmeval.dataset.utils", "vlmeval.utils")
    from vlmeval.dataset.utils import vqa_eval
    from vlmeval.dataset.utils.yorn import YOrN_Extraction
    from vlmeval.utils.matching_util import can_infer

    def score(case: dict[str, Any], method: str, dataset: str) -> float:
        line = vqa_eval.process_line({"answer": repr(case["golds"]), "prediction": case["answer"]}, method=method)
        return float(vqa_eval.hit_calculate([line], dataset)[0])

    read = {"Yes": "yes", "No": "no"}
    return {
        "choice": {
            "ms-vlmeval@0.0.20/can_infer": [
                can_infer(case["answer"], dict(case["options"])) or None for case in data["choice"]
            ]
        },
        "anls": {"vlmevalkit@e8e78f05/anls": [score(case, "anls", "DocVQA") for case in data["anls"]]},
        "relaxed": {
            "vlmevalkit@e8e78f05/relaxed": [
                score({**case, "golds": case["golds"][:1]}, "relaxed_accuracy", "ChartQA") for case in data["relaxed"]
            ]
        },
        "vqa": {"vlmevalkit@e8e78f05/vqa_score": [score(case, "vqa_score", "TextVQA") for case in data["vqa"]]},
        "yes_no": {
            "vlmevalkit@e8e78f05/yes-no": [read.get(YOrN_Extraction(case["answer"])) for case in data["yes_no"]],
        },
    }
