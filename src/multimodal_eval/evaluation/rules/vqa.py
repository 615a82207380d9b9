"""Rules for VQA accuracy: which texts are compared.

A rule takes the answer and the human answers, and returns both as they are compared. The formula, which counts the
people with the same answer, is the same for all of them (`evaluation.metrics.vqa_accuracy`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from multimodal_eval.core.rules import rule
from multimodal_eval.evaluation.rules.answer_text import normalise_evalai_answer, normalise_vqa_answer, one_line

__all__ = ["WITHOUT_EXCEPTION", "Compared", "VqaRule"]

Compared: TypeAlias = tuple[str | None, list[str]]  # the answer and the human answers; None equals no human answer
# Rules of programs whose formula has no exception for a single human answer: with nobody left to agree, it gives 0.
WITHOUT_EXCEPTION = frozenset({"lmms-eval@0.7.3/vqav2", "lmms-eval@0.7.3/textvqa", "vlmevalkit@e8e78f05/vqa_score"})
VqaRule: TypeAlias = Callable[[str, Sequence[str]], Compared]


@rule("vqa", "vqa-v2@official", origin="vqaEval.py of the VQA evaluation program (GT-Vision-Lab/VQA)")
def official(answer: str, humans: Sequence[str]) -> Compared:
    """Texts are normalised only if the human answers differ from one another.

    If all people gave the same text, the answer must equal it apart from surrounding white space: "dog" is wrong if all
    ten people wrote "the dog". A blank answer equals no human answer. The evaluation of OK-VQA and VizWiz uses the same
    program.
    """
    if not answer.strip():
        return None, list(humans)
    lines = [one_line(human) for human in humans]
    if len(lines) > 1 and len(set(lines)) == 1:
        return one_line(answer), lines
    return normalised(answer, humans)


@rule("vqa", "vqa@evalai", origin="the answer processor of EvalAI, as in MMF (facebookresearch/mmf)")
def evalai(answer: str, humans: Sequence[str]) -> Compared:
    """All texts are normalised, after EvalAI's first step: lower case, no commas and question marks, a space before 's.

    TextVQA's accuracy is computed in this way.
    """
    return normalise_evalai_answer(answer), [normalise_evalai_answer(human) for human in humans]


@rule("vqa", "lmms-eval@0.7.3/vqav2", origin="vqav2_process_results of lmms-eval 0.7.3")
def normalised(answer: str, humans: Sequence[str]) -> Compared:
    """All texts are normalised as in the official program, also if all people gave the same answer.

    A blank answer equals a human answer of which nothing is left, such as "a".
    """
    return normalise_vqa_answer(answer), [normalise_vqa_answer(human) for human in humans]


@rule("vqa", "lmms-eval@0.7.3/textvqa", origin="textvqa_process_results of lmms-eval 0.7.3")
def lmms_textvqa(answer: str, humans: Sequence[str]) -> Compared:
    """The same as `vqa@evalai`; lmms-eval also uses it for OK-VQA and VizWiz."""
    return evalai(answer, humans)


@rule("vqa", "vlmevalkit@e8e78f05/vqa_score", origin="process_line of VLMEvalKit at e8e78f05")
def vlmevalkit(answer: str, humans: Sequence[str]) -> Compared:
    """All texts are normalised, but a full stop after a digit stays: "5." and "5" differ."""

    def text(raw: str) -> str:
        return normalise_vqa_answer(raw, keeps_stop_after_digit=True)

    return text(answer), [text(human) for human in humans]
