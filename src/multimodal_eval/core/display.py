"""How figures are printed, in one way everywhere: terminal, report, viewer, Markdown and LaTeX. Only displays round."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Protocol, cast

DASH = "–"
_SMALLEST_P = 0.0001


def counted(count: int, noun: str) -> str:
    """`1 sample`, `2 samples`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def number(value: float | None) -> str:
    """Four decimals."""
    return DASH if value is None else f"{value:.4f}"


def number_beside(value: float, limit: float) -> str:
    """Four decimals, or as many as show on which side of the limit the value is: `0.09999` beside 0.1."""
    shown = (f"{value:.{digits}f}" for digits in range(4, 18))
    return next((text for text in shown if _side(float(text), limit) == _side(value, limit)), repr(value))


def _side(value: float, limit: float) -> tuple[bool, bool]:
    return value < limit, value > limit


def with_margin(value: float, low: float | None, high: float | None, digits: int = 4) -> str:
    """A score ± the larger distance to an end of its interval, which need not be symmetric: `0.5876 ± 0.2113`."""
    if low is None or high is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} ± {max(value - low, high - value):.{digits}f}"


def p_value(value: float | None) -> str:
    """A p-value with four decimals; `< 0.0001` below that, since no p-value is 0."""
    if value is None:
        return DASH
    return f"< {_SMALLEST_P}" if value < _SMALLEST_P else f"{value:.4f}"


def p_comparison(value: float | None) -> str:
    """A p-value in a sentence: `p = 0.0312`, `p < 0.0001`."""
    shown = p_value(value)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


# Results that a notebook shows as tables and drawings.
#
# How a result looks is decided in `display`, which is imported when a result is shown: records do not depend on
# the layer that draws them.

_DISPLAYS = "multimodal_eval.display.renderer"


class _Displays(Protocol):
    def html_of(self, result: object) -> str: ...

    def text_of(self, result: object) -> str: ...


def _displays() -> _Displays:
    return cast(_Displays, import_module(_DISPLAYS))


class HasHtml:
    """A result that notebooks show as HTML. Its `repr` is that of its class."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _displays().html_of(self)


class Displayed(HasHtml):
    """A result that notebooks show as HTML, and terminals as the same tables in plain text."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _displays().text_of(self)


# Names of metrics as papers print them. JSON and CSV keep the identifiers.

_PRINTED = {
    "anls": "ANLS",
    "anls_star": "ANLS*",
    "bertscore": "BERTScore",
    "bleu": "BLEU-4",
    "chair_i": "CHAIRi",
    "chair_s": "CHAIRs",
    "chrf": "chrF",
    "cider": "CIDEr",
    "cider_d": "CIDEr-D",
    "cider_r": "CIDEr-R",
    "cer": "CER",
    "clipscore": "CLIPScore",
    "gqa": "GQA",
    "iou": "IoU",
    "mer": "MER",
    "meteor": "METEOR",
    "ocrbench": "OCRBench",
    "ref_clipscore": "RefCLIPScore",
    "rouge_l": "ROUGE-L",
    "rouge_lsum": "ROUGE-Lsum",
    "sacrebleu": "sacreBLEU",
    "spice": "SPICE",
    "spider": "SPIDEr",
    "ter": "TER",
    "wer": "WER",
    "wil": "WIL",
}
_NUMBERED = re.compile(r"(bleu|rouge)_(\d)")


def printed(name: str) -> str:
    """`CIDEr-D` for `cider_d`, `BLEU-1` for `bleu_1` and `bleu.bleu_1`; other names are unchanged."""
    metric, _, part = name.partition(".")
    if numbered := _NUMBERED.fullmatch(part or metric):
        return f"{numbered[1].upper()}-{numbered[2]}"
    shown = _PRINTED.get(metric, metric)
    return f"{shown}.{part}" if part else shown
