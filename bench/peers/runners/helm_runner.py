"""HELM: the reference metrics of VHELM's captioning, multiple choice, POPE and VQA runs."""

from __future__ import annotations

from typing import Any

PACKAGES = ("crfm-helm", "nltk", "rouge-score")


def stats(names: list[str], answer: str, golds: list[str], mapping: dict[str, str] | None = None) -> dict[str, float]:
    """HELM's metrics of one answer."""
    from helm.benchmark.adaptation.adapter_spec import AdapterSpec
    from helm.benchmark.adaptation.request_state import RequestState
    from helm.benchmark.metrics.evaluate_reference_metrics import compute_reference_metrics
    from helm.benchmark.metrics.metric_service import MetricService
    from helm.benchmark.scenarios.scenario import CORRECT_TAG, Input, Instance, Output, Reference
    from helm.common.request import GeneratedOutput, Request, RequestResult

    references = [Reference(Output(text=gold), tags=[CORRECT_TAG]) for gold in golds]
    completion = GeneratedOutput(text=answer, logprob=0.0, tokens=[])
    state = RequestState(
        instance=Instance(Input(text=""), references=references),
        reference_index=None,
        request_mode=None,
        train_trial_index=0,
        output_mapping=mapping,
        request=Request(model="", model_deployment=""),
        result=RequestResult(success=True, embedding=[], completions=[completion], cached=False),
        num_train_instances=0,
        prompt_truncated=False,
    )
    service: MetricService = None
    computed = compute_reference_metrics(names, AdapterSpec(), state, service)
    return {stat.name.name: stat.mean for stat in computed}


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    names = {"bleu_1": "BLEU-1", "bleu_4": "BLEU-4", "rouge_l": "ROUGE-L", "cider": "CIDEr"}
    totals = dict.fromkeys(names, 0.0)
    for text, texts in zip(data["candidates"], data["references"], strict=True):
        scores = stats(list(names), text, texts)
        for name in names:
            totals[name] += scores[name]
    return {"HELM": {names[name]: total / len(data["candidates"]) for name, total in totals.items()}}


def answers(data: dict[str, Any]) -> dict[str, dict[str, list[Any]]]:
    def letter(answer: str, options: dict[str, str]) -> str | None:
        """The option that HELM takes. Letters replace the texts of options, since two may be equal."""
        letters = {option: option for option in options}
        stripped = answer.strip()
        if stripped not in letters:  # HELM maps it to None, and its exact match is 0 for every gold answer
            return None
        return stripped if stats(["exact_match"], answer, [stripped], letters)["exact_match"] else None

    return {
        "choice": {"helm/multiple_choice_joint": [letter(case["answer"], case["options"]) for case in data["choice"]]},
        "vqa": {
            "helm/quasi_exact_match": [
                stats(["quasi_exact_match"], case["answer"], case["golds"])["quasi_exact_match"] for case in data["vqa"]
            ]
        },
    }
