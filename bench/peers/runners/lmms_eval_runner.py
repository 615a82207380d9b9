"""lmms-eval: the functions of its tasks for COCO captions, MMMU, ChartQA, VQAv2, TextVQA and POPE, and its ANLS."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

from partial_packages import DrawnError, drawn, without_init

PACKAGES = ("lmms-eval", "pycocoevalcap")


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    without_init("lmms_eval.tasks")
    from lmms_eval.tasks.coco_cap import utils

    names = {f"BLEU-{n}": f"Bleu_{n}" for n in range(1, 5)}
    names |= {"METEOR": "METEOR", "ROUGE-L": "ROUGE_L", "CIDEr": "CIDEr"}
    results = [
        {"answer": texts, "pred": text, "image_id": image, "id": image}
        for image, (text, texts) in enumerate(zip(data["candidates"], data["references"], strict=True))
    ]
    arguments = SimpleNamespace(output_path=".")
    return {
        "lmms-eval": {
            name: float(utils.coco_aggregation_result(results, theirs, arguments)) for name, theirs in names.items()
        }
    }


def answers(data: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    without_init("lmms_eval.tasks", "lmms_eval.api")
    registry = ModuleType("lmms_eval.api.registry")  # the real one imports torch; its decorators return the function
    registry.register_aggregation = registry.register_metric = lambda *_, **__: lambda function: function  # type: ignore[attr-defined]
    sys.modules["lmms_eval.api.registry"] = registry
    from lmms_eval.api.metrics import anls
    from lmms_eval.tasks._task_utils import mmmu_mcq_utils
    from lmms_eval.tasks._task_utils.mcq_extract import extract_mcq_answer
    from lmms_eval.tasks.chartqa.utils import relaxed_correctness
    from lmms_eval.tasks.pope.utils import pope_process_results
    from lmms_eval.tasks.textvqa.utils import textvqa_process_results
    from lmms_eval.tasks.vqav2.utils import vqav2_process_results

    mmmu_mcq_utils.random = SimpleNamespace(choice=drawn)

    def mmmu(case: dict[str, Any]) -> str:
        options = case["options"]
        try:
            return str(mmmu_mcq_utils.parse_mmmu_multi_choice_response(case["answer"], list(options), dict(options)))
        except DrawnError:
            return "drawn"

    def pope(case: dict[str, Any]) -> str | None:
        for gold in ("yes", "no"):
            document = {"answer": gold, "question_id": 1}
            if pope_process_results(document, [case["answer"]])["pope_accuracy"]["score"]:
                return gold
        return None

    def vqav2(case: dict[str, Any]) -> float:
        people = [{"answer": gold, "answer_id": place} for place, gold in enumerate(case["golds"])]
        return float(vqav2_process_results({"answers": people, "question_id": 0}, [case["answer"]])["exact_match"])

    def textvqa(case: dict[str, Any]) -> float:
        document = {"answers": list(case["golds"]), "question_id": 0}
        return float(textvqa_process_results(document, [case["answer"]])["exact_match"])

    return {
        "choice": {
            "lmms-eval@0.7.3/mmmu": [mmmu(case) for case in data["choice"]],
            "lmms-eval@0.7.3/mcq_extract": [
                extract_mcq_answer(case["answer"], list(case["options"])) or None for case in data["choice"]
            ],
        },
        "anls": {"lmms-eval@0.7.3/anls": [anls(case["golds"], [case["answer"]])["anls"] for case in data["anls"]]},
        "relaxed": {
            "lmms-eval@0.7.3/chartqa": [
                float(relaxed_correctness(case["answer"], case["golds"][0])) for case in data["relaxed"]
            ]
        },
        "vqa": {
            "lmms-eval@0.7.3/vqav2": [vqav2(case) for case in data["vqa"]],
            "lmms-eval@0.7.3/textvqa": [textvqa(case) for case in data["vqa"]],
        },
        "yes_no": {"lmms-eval@0.7.3/pope": [pope(case) for case in data["yes_no"]]},
    }
