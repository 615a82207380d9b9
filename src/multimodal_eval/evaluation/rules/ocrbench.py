"""Rules for OCRBench: whether an answer contains a gold text.

A rule takes the answer, a gold text and whether the question is about a handwritten formula.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from multimodal_eval.core.rules import rule

__all__ = ["OcrBenchRule"]

OcrBenchRule: TypeAlias = Callable[[str, str, bool], bool]

# The full-width forms of the printable ASCII characters, and the ideographic space.
_FULL_WIDTH = {0xFF01 + offset: 0x21 + offset for offset in range(0x5E)} | {0x3000: 0x20}


@rule("ocrbench", "ocrbench@official", origin="Liu et al. (2023), arXiv:2305.07895, and its program")
def official(answer: str, gold: str, is_formula: bool) -> bool:
    """The answer contains the gold text, in lower case. For formulas, case counts and all spaces are removed."""
    if is_formula:
        return _without_spaces(gold) in _without_spaces(answer)
    return _lowered(gold) in _lowered(answer)


@rule("ocrbench", "lmms-eval@0.7.3/ocrbench", origin="ocrbench_process_results of lmms-eval 0.7.3")
def lmms_eval(answer: str, gold: str, is_formula: bool) -> bool:
    """As `ocrbench@official`; outside formulas, full-width letters, digits and marks equal the ASCII ones."""
    if is_formula:
        return official(answer, gold, is_formula)
    return _lowered(gold.translate(_FULL_WIDTH)) in _lowered(answer.strip().translate(_FULL_WIDTH))


def _without_spaces(text: str) -> str:
    return text.strip().replace("\n", " ").replace(" ", "")


def _lowered(text: str) -> str:
    return text.lower().strip().replace("\n", " ")
