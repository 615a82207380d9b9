"""The rules by which single benchmarks compare an open answer.

ChartQAPro: numbers with a tolerance of 5%, years and some types exactly, other texts by ANLS, lists by element.

The columns are `Question Type` and `Year`, a list of YES and NO; the gold answer is the last of the answers.

MATH-Vision: the final answer is extracted, normalised as LaTeX, and compared as text or as a number.

MathVista: an answer is normalised by the type of the question, and must then equal the gold answer.

The columns `question_type` (multi_choice, free_form), `answer_type` (text, integer, float, list) and `precision` say
how.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Sequence

from multimodal_eval._native import edit_distance
from multimodal_eval.core.rules import rule
from multimodal_eval.evaluation.choices import GoldError
from multimodal_eval.evaluation.rules._readings import letters_of
from multimodal_eval.evaluation.rules.anls import SIMILARITIES
from multimodal_eval.evaluation.rules.answer_text import final_answer
from multimodal_eval.evaluation.rules.open_answer import NOTHING, Question, Verdict
from multimodal_eval.evaluation.rules.relaxed import TOLERANCE, plain_number
from multimodal_eval.text.latex_numbers import latex_number

__all__ = [
    "chartqapro",
    "chartqapro_lmms_eval",
    "charxiv",
    "charxiv_extracted",
    "math_vision",
    "mathverse",
    "mathverse_extracted",
    "mathvista",
    "mathvista_2023",
    "mathvista_2023_extracted",
    "mathvista_extracted",
]

_LONGEST_LIST = 20_000  # characters; a longer answer is not a list of short answers
_BRACKETS = re.compile(r"\[(.*)\]")
_UNQUOTED = re.compile(r"(?<!['\w])(\w[\w']*)")
_EXACT = ("Fact Checking", "Multi Choice")


def _elements(text: str) -> list[str]:
    """The elements of a Python list; the text itself if it is none, or empty."""
    if len(text) <= _LONGEST_LIST and text.lstrip().startswith(("[", "(")):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about odd escapes and calls of numbers
                parsed = ast.literal_eval(text)
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
            return [text]
        if isinstance(parsed, list) and parsed:
            return [str(element).strip(" '") for element in parsed]
    return [text]


def _gold_elements(text: str) -> list[str]:
    """As for answers, but words without quotes get them first: `[New York, LA]` has the elements NewYork and LA."""
    inside = _BRACKETS.fullmatch(text.strip())
    if inside is not None:
        quoted = "[" + _UNQUOTED.sub(r"'\1'", inside[1]) + "]"
        elements = _elements(quoted)
        if elements != [quoted]:
            return elements
    return _elements(text)


def _number(text: str) -> float | None:
    try:
        return float(text.strip().strip("%"))
    except ValueError:
        return None


def _similarity(said: str, gold: str) -> float:
    """1 or 0 for two numbers, within 5% of the gold one; ANLS for other texts."""
    said, gold = said.strip().strip("%").strip(), gold.strip().strip("%").strip()
    number, target = _number(said), _number(gold)
    if number is None or target is None:
        return SIMILARITIES["anls@2019"](said, gold)
    return float(number == 0 if target == 0 else abs(number - target) / abs(target) <= TOLERANCE)


def _flags(question: Question, count: int) -> list[bool]:
    """Which elements are years. A conversation has those of its last question; too few flags are repeated."""
    value = question.column("year")
    flags: Sequence[object] = _elements(value) if isinstance(value, str) else value or ()
    if question.column("question_type") == "Conversational":
        flags = flags[-1:]
    if len(flags) < count:
        flags = list(flags) * count
    is_year = [str(flag).upper() == "YES" for flag in flags]
    return is_year + [False] * (count - len(is_year))


def _score(answer: str, gold: str, question: Question, *, is_exact: bool) -> Verdict:
    said, golds = _elements(answer), _gold_elements(gold)
    flags = _flags(question, len(golds))
    values = [
        float(element.strip().lower() == target.strip().lower())
        if is_exact or is_year
        else _similarity(element, target)
        for element, target, is_year in zip(said, golds, flags, strict=False)
    ]
    return Verdict(sum(values) / max(len(said), len(golds)), answer or None)


@rule(
    "open_answer", "chartqapro@2025", origin="evaluate_predictions.py of ChartQAPro (4b422c6); VLMEvalKit has the same"
)
def chartqapro(answer: str, question: Question) -> Verdict:
    """ChartQAPro's rule: the mean over the elements of the answer and the gold answer, which may be lists.

    Years must be equal in lower case. Numbers may differ by 5%, without percent signs; a gold 0 needs a 0. Other texts
    score by `anls@2019`. Elements are compared by place, and those that only one list has score 0. An answer is a list
    if it is one in Python: `[a, b]` without quotes is a text. Facts and choices are compared as other texts, too: the
    origin computes that they need an exact match, and does not use it.
    """
    return _score(answer.strip(".").strip("\n"), question.golds[-1].strip(".").strip("\n"), question, is_exact=False)


@rule("open_answer", "lmms-eval@0.7.3/chartqapro", origin="lmms-eval 0.7.3, tasks/chartqapro/utils.py")
def chartqapro_lmms_eval(answer: str, question: Question) -> Verdict:
    """As `chartqapro@2025`, but facts and choices must be equal in lower case, and white space around is removed."""
    said, gold = answer.strip().strip(".").strip("\n"), question.golds[-1].strip().strip(".").strip("\n")
    return _score(said, gold, question, is_exact=question.column("question_type") in _EXACT)


_BOX = "oxed{"
_LETTER_AT_END = re.compile(r" (?:([A-E])|\(([A-E])\))\.\Z")
_LETTER_AT_START = re.compile(r"(?:([A-E])|\(([A-E])\)|\(([A-E])\) \3)\n")
_PHRASES = ("the final answer is", "the answer is", "the correct answer is", "the answer should be")
_BRACKETED_LETTER = re.compile(r"\(([a-e])\)")
_BRACED_LETTER = re.compile(r"\{([a-e])\}")
# What is removed or replaced, one after the other.
_FIRST_CHANGES = (
    *((" ", ""), (r"\,", ""), ("∞", r"\infty"), (r"+\infty", r"\infty"), (r"\\", "\\"), ("\n", ""), (r"\text", "")),
    *((r"\mbox", ""), ("bmatrix", "pmatrix"), (r"\left", ""), (r"\right", ""), (r"^{\circ}", ""), (r"^\circ", "")),
    *(("{m}^3", ""), ("m^3", ""), ("{units}", ""), ("units", ""), ("{km}", ""), ("km", "")),
)
_LATER_CHANGES = (
    *((r"\!", ""), (r"\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"), (r"\left", ""), (r"\right", "")),
    *((r"^{\circ}", ""), (r"^\circ", ""), (r"\$", ""), ("$", ""), (r"\%", ""), ("{.", "{0.")),
)
_BARE_ROOT = re.compile(r"\\sqrt(?!\\sqrt)([^{])")
_RATIO = re.compile(r"(-?[1-9][0-9]*|0)/(-?[1-9][0-9]*|0)")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _stated(answer: str) -> str:
    """The part of an answer that states the result."""
    text = answer.strip()
    matches = (_LETTER_AT_END.search(text), _LETTER_AT_START.match(text))
    letters = [letter for match in matches if match is not None for letter in match.groups() if letter]
    text = min(letters, default=text)
    tail = text.rpartition("is ")[2].rstrip(".")
    if _is_number(tail):
        text = tail
    if _BOX not in text:
        for phrase in _PHRASES:
            for form in (phrase, phrase.replace("the", "The")):
                _, phrase_itself, rest = text.rpartition(form)
                text = rest.strip()
                if phrase_itself:
                    text = text.partition("\n")[0].partition(". ")[0]
    elif text.count(_BOX) > 1:
        text = "\\b" + _BOX + text.rpartition(_BOX)[2]
    return text


def _braced_fractions(text: str) -> str:
    """`\\frac12` and `\\frac1{72}` with braces."""
    head, *tails = text.split(r"\frac")
    if any(tail[:1] != "{" and len(tail) < 2 for tail in tails):
        return text
    return "".join([head, *(r"\frac" + _braced(tail) for tail in tails)])


def _braced(tail: str) -> str:
    if tail[0] == "{":
        return tail
    rest = tail[1:] if tail[1] == "{" else "{" + tail[1] + "}" + tail[2:]
    return "{" + tail[0] + "}" + rest


def _plain(text: str) -> str:
    """The result in LaTeX without layout, units and dollar signs."""
    for old, new in _LATER_CHANGES:
        text = text.replace(old, new)
    if text.startswith("."):
        text = "0" + text
    if "sqrt" in text:
        text = _braced_fractions(_BARE_ROOT.sub(r"\\sqrt{\1}", text))
    if text == "0.5":
        return r"\frac{1}{2}"
    ratio = _RATIO.fullmatch(text)
    return text if ratio is None else rf"\frac{{{ratio[1]}}}{{{ratio[2]}}}"


def extracted(answer: str) -> str:
    """The final answer in the form in which it is compared."""
    text = _stated(answer).lower().replace("{}", "")
    start, end = text.find(_BOX), text.rfind("}")
    if 0 <= start < end - len(_BOX) + 1:
        text = text[start + len(_BOX) : end]
    closing, opening = text.find("}"), text.find("{")
    if closing >= 0 and (opening < 0 or closing < opening):
        text = text[:closing]
    text = text.rpartition("=")[2].rpartition(r"\approx")[2]
    for old, new in _FIRST_CHANGES:
        text = text.replace(old, new)
    text = _BRACED_LETTER.sub(r"\1", _BRACKETED_LETTER.sub(r"\1", _plain(text)))
    return text.rstrip(".").lstrip(":").strip()


def _with_values(text: str) -> str:
    """A tuple or a list with its elements as numbers, rounded to two places; the text itself if one is not a number."""
    elements = text[1:-1].split(",")
    if len(elements) < 2 or text[0] + text[-1] not in ("()", "[]"):
        return text
    values = []
    for element in elements:
        if "infty" in element or element in ("a", "-a"):
            values.append(element)
        elif (value := latex_number(element)) is None:
            return text
        else:
            values.append(str(round(value, 2)))
    return text[0] + ",".join(values) + text[-1]


def _are_equal(said: str, gold: str) -> bool:
    said, gold = said.lower(), gold.lower()
    if not said.replace(" ", "") or not gold.replace(" ", ""):
        return False
    if said.strip() == gold.strip():
        return True
    said, gold = _with_values(said), _with_values(gold)
    if said == gold:
        return True
    value = latex_number(said)
    target = None if value is None else latex_number(gold)
    return value is not None and target is not None and round(value, 2) == round(target, 2)


@rule("open_answer", "math-vision@2024", origin="evaluation/{evaluate,utils}.py of MATH-V (a1f5cc3)")
def math_vision(answer: str, question: Question) -> Verdict:
    r"""MATH-V's rule: the final answer equals the gold answer, or the text of the gold option.

    The final answer is a letter at the start or the end, a number after the last "is ", the last `\boxed{…}`, or the
    text after "the answer is" and similar phrases, in lower case and without spaces, units, degrees and dollar signs.
    Texts must be equal. Numbers in LaTeX, also in tuples and lists, are compared with two decimal places, and what
    follows a closing bracket or a full stop is ignored. The origin executes the answer to compute numbers; here it is
    only read.
    """
    said = extracted(answer)
    is_right = any(
        _are_equal(gold, said) or _are_equal(question.options.get(gold, ""), said) for gold in question.golds
    )
    return Verdict(float(is_right), said or None)


_ORIGIN = "evaluation/{extract_answer,calculate_score}.py of MathVista"
_LETTER = re.compile(r"\(([a-zA-Z])\)")
ToInteger = Callable[[str], int]


def _truncated(text: str) -> int:
    return int(float(text))


def _is_choice(question: Question) -> bool:
    kind = question.column("question_type")
    return bool(question.options) if kind is None else kind == "multi_choice"


def _normalised(extraction: str, question: Question, to_integer: ToInteger) -> str | None:
    """The extraction in the form of the gold answer; None if it has none."""
    if _is_choice(question):
        if not question.options:
            raise GoldError("a multiple-choice question needs `choices`")
        return _nearest_option(extraction.strip(), list(question.options.values()))
    kind = question.column("answer_type")
    try:
        if kind == "integer":
            return str(to_integer(extraction))
        if kind == "float":
            return str(round(float(extraction), int(question.column("precision"))))
    except (ValueError, TypeError, OverflowError):
        return None
    return extraction if kind == "list" else None


def _nearest_option(text: str, options: list[str]) -> str:
    """The option of the first letter in parentheses, or of the text if it is a letter; else the most similar one."""
    stated = _LETTER.search(text)
    if stated is not None:
        text = stated[1].upper()
    letters = letters_of(len(options))
    if text in letters:
        return options[letters.index(text)]
    return min(options, key=lambda option: edit_distance(text, option))


def _verdict(extraction: str, question: Question, to_integer: ToInteger) -> Verdict:
    said = _normalised(extraction, question, to_integer)
    return NOTHING if said is None else Verdict(float(said in question.golds), said)


def _extracted(answer: str, question: Question) -> str | None:
    """What the origin takes without a model: an empty answer, the text of an option, a number of the right type."""
    if not answer or (_is_choice(question) and answer in question.options.values()):
        return answer
    kind = question.column("answer_type")
    try:
        return str(int(answer)) if kind == "integer" else str(float(answer)) if kind == "float" else None
    except ValueError:
        return None


def _of_answer(answer: str, question: Question, to_integer: ToInteger) -> Verdict:
    extraction = _extracted(answer, question)
    return NOTHING if extraction is None else _verdict(extraction, question, to_integer)


@rule("open_answer", "mathvista@2024", origin=f"{_ORIGIN} (53d5258), without its model")
def mathvista(answer: str, question: Question) -> Verdict:
    """MathVista's rule for answers that need no model: the text of an option, or a number of the right type.

    Then as `mathvista@2024/extracted`. MathVista asks a model to extract all other answers, which are unread here.
    """
    return _of_answer(answer, question, _truncated)


@rule("open_answer", "mathvista@2024/extracted", origin=f"{_ORIGIN} (53d5258)")
def mathvista_extracted(answer: str, question: Question) -> Verdict:
    """MathVista's rule for answers from which a model has extracted the final value.

    A choice is the option of the first letter in parentheses, or of a bare letter, else the option with the smallest
    edit distance: the first of several, and the shortest one for an empty answer. An integer is cut after the point
    (3.9 is 3), a float is rounded to `precision` places, and a list is taken as it is. The result must
    equal the gold answer as text.
    """
    return _verdict(answer, question, _truncated)


@rule("open_answer", "mathvista@2023", origin=f"{_ORIGIN}, as it made the published scores; without its model")
def mathvista_2023(answer: str, question: Question) -> Verdict:
    """As `mathvista@2024`, with the integers of `mathvista@2023/extracted`."""
    return _of_answer(answer, question, int)


@rule("open_answer", "mathvista@2023/extracted", origin=f"{_ORIGIN}, as it made the published scores")
def mathvista_2023_extracted(answer: str, question: Question) -> Verdict:
    """As `mathvista@2024/extracted`, but an integer must be written as one: "5.0" is wrong."""
    return _verdict(answer, question, int)


# MathVerse and CharXiv, whose models extract and judge

_LETTERS = frozenset("abcdefgh")


def _without_judge(answer: str, question: Question, *, is_extracted: bool) -> Verdict:
    """What needs no judge: an answer that states the gold answer, and another letter or number than the gold one."""
    said = (final_answer(answer) or "").strip(" ().:")
    if not said:
        return NOTHING
    golds = [(final_answer(gold) or "").strip(" ().:") for gold in question.golds]
    numbers = [plain_number(gold) for gold in golds]
    number = plain_number(said)
    if said in golds or (number is not None and number in numbers):
        return Verdict(1.0, said)
    is_other = (number is not None and None not in numbers) or (said in _LETTERS and _LETTERS.issuperset(golds))
    return Verdict(0.0, said) if is_other or is_extracted else NOTHING


@rule("open_answer", "mathverse@2024", origin="MathVerse (937b090), without its models")
def mathverse(answer: str, question: Question) -> Verdict:
    """MathVerse's rule as far as it needs no model: the answer states the gold answer, or another letter or number.

    MathVerse asks a model to extract all answers, and then to judge them. Other answers are unread here.
    """
    return _without_judge(answer, question, is_extracted=False)


@rule(
    "open_answer", "mathverse@2024/extracted", origin="MathVerse (937b090), with equality instead of its second model"
)
def mathverse_extracted(answer: str, question: Question) -> Verdict:
    """The value that a model has extracted equals the gold answer: as a number, or in lower case."""
    return _without_judge(answer, question, is_extracted=True)


@rule("open_answer", "charxiv@2024", origin="CharXiv (7ebe88f), without its model")
def charxiv(answer: str, question: Question) -> Verdict:
    """CharXiv's rule as far as it needs no model: the answer states the gold answer, or another number.

    CharXiv asks a model to extract and to judge all answers. Other answers are unread here.
    """
    return _without_judge(answer, question, is_extracted=False)


@rule("open_answer", "charxiv@2024/extracted", origin="CharXiv (7ebe88f), with equality instead of its model's verdict")
def charxiv_extracted(answer: str, question: Question) -> Verdict:
    """The value that a model has extracted equals the gold answer: as a number, or in lower case."""
    return _without_judge(answer, question, is_extracted=True)
