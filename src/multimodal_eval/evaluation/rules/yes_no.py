"""Yes or no: which of them does an answer state?

A rule is a function `rule(answer) -> Reading`, whose choice is `yes` or `no`, or None if nothing was read.
"""

from __future__ import annotations

import re

from multimodal_eval.core.rules import rule
from multimodal_eval.evaluation.rules._choice_default import without_reasoning
from multimodal_eval.evaluation.rules._readings import UNREAD, Reading, read

__all__ = [
    "default_yes_no",
    "mme",
    "mme_lmms_eval",
    "pope",
    "pope_lmms_eval",
    "yes_no_vlmevalkit",
]

YES, NO = read("yes"), read("no")

# Words for yes and no, of which the first word of an answer may be any.
_YES_WORDS = "yes|yeah|yep|yup|true|correct|да|sí|oui|ja|sim|tak|evet|是的|是|对|有|はい|예|네"
_NO_WORDS = "no|nope|false|incorrect|нет|non|nein|não|nie|hayır|不是|不对|否|没有|不|いいえ|아니요|아니오"
_START = re.compile(
    rf"[\s*_`\"'“(\[（【#>-]*+(?:(?P<yes>{_YES_WORDS})|(?P<no>{_NO_WORDS}))(?![a-zà-öø-ÿа-яё0-9])", re.I
)
_STATED = re.compile(
    r"(?:answer|response|conclusion|ответ|réponse|respuesta|antwort|答案|答え|정답)"
    r"(?:\s+(?:to|for|of|here)\b[^.\n:]{0,80}?)?[\s*_`\"')\]]{0,20}+"
    r"(?:is|would\s+be|should\s+be|must\s+be|est|es|ist|[:：=—-]|是|为|は|은|는)"
    r"[\s*_`$\"'“(\[\\{]{0,20}+(?:text\{|boxed\{|most\s+likely\s+|likely\s+|therefore\s+|clearly\s+|definitely\s+|a\s+)?"
    rf"[*_`\"'“]{{0,8}}+(?:(?P<yes>{_YES_WORDS})|(?P<no>{_NO_WORDS}))(?![a-zà-öø-ÿа-яё0-9])",
    re.I,
)
_BOXED = re.compile(
    r"(?:\\boxed\{|<answer>|\[\[)[\s*_`]{0,20}+(?:\\text\{)?(?:(?P<yes>yes|true)|(?P<no>no|false))\b", re.I
)
_WORDS = re.compile(r"\b(?:(?P<yes>yes)|(?P<no>no))\b", re.I)


def _of(match: re.Match[str]) -> Reading:
    return YES if match["yes"] else NO


@rule("yes_no", "mmeval@1", origin="multimodal_eval, the default")
def default_yes_no(answer: str) -> Reading:
    r"""What a reader would take as the answer.

    Reasoning in `<think>` is left out. In this order: the last boxed or tagged answer; the last statement ("the answer
    is no"); the first word, in any of the common languages ("Yes, there is", "No.", "нет", "是的"), unless the opposite
    follows immediately ("No yes"); the only one of the words yes and no in the answer ("There is no dog" is no).
    """
    text = without_reasoning(answer).strip()
    if not text:
        return UNREAD
    for pattern in (_BOXED, _STATED):
        statements = list(pattern.finditer(text))
        if statements:
            return _of(statements[-1])
    start = _START.match(text)
    if start is not None:
        other = _WORDS.match(text, start.end() + 1)  # "No yes", "yes/no"
        return _of(start) if other is None or _of(other) is _of(start) else UNREAD
    words = {_of(match) for match in _WORDS.finditer(text)}
    return words.pop() if len(words) == 1 else UNREAD


@rule("yes_no", "pope@2023", origin="POPE's evaluate.py, https://github.com/RUCAIBox/POPE")
def pope(answer: str) -> Reading:
    """POPE's rule: no if the first sentence has the word No, no or not, else yes.

    The sentence ends at the first full stop; commas are removed, and only blanks separate words. Something is always
    read: an answer about anything else, and an empty one, is a yes.
    """
    words = answer.partition(".")[0].replace(",", "").split(" ")
    return NO if "No" in words or "no" in words or "not" in words else YES


@rule("yes_no", "lmms-eval@0.7.3/pope", origin="lmms-eval 0.7.3, tasks/pope/utils.py", older="pope@lmms-eval")
def pope_lmms_eval(answer: str) -> Reading:
    """lmms-eval's rule for POPE: the whole answer must be yes or no, in any case. `Yes.` is not read."""
    return {"yes": YES, "no": NO}.get(answer.lower().strip(), UNREAD)


_MARKS = ';/[]"{}()=+\\_-><@`,?!'
_COMMA_IN_NUMBER = re.compile(r"\d,\d")
_FULL_STOP = re.compile(r"(?<!\d)\.(?!\d)")
_FULL_STOPS = 32  # the origin passes a regular expression flag as the count


@rule(
    "yes_no",
    "vlmevalkit@e8e78f05/yes-no",
    origin="VLMEvalKit e8e78f05, vlmeval/dataset/utils/yorn.py",
    older="yes-no@vlmevalkit",
)
def yes_no_vlmevalkit(answer: str) -> Reading:
    """VLMEvalKit's rule: the only one of the words yes and no, in any case, after punctuation is removed.

    All marks of a kind are removed if one of them is next to a blank, or if the answer has a comma between two digits;
    otherwise they become blanks. The first 32 full stops that are not in a number are removed; other marks, such as
    colons and stars, stay. VLMEvalKit asks a judge model if nothing is read.
    """
    text = answer.lower()
    if "yes" not in text and "no" not in text:
        return UNREAD
    has_long_number = _COMMA_IN_NUMBER.search(text) is not None
    bare = text
    for mark in _MARKS:
        if mark in text:
            is_removed = has_long_number or f"{mark} " in text or f" {mark}" in text
            bare = bare.replace(mark, "" if is_removed else " ")
    words = {*_FULL_STOP.sub("", bare, count=_FULL_STOPS).split()}
    if ("yes" in words) == ("no" in words):
        return UNREAD
    return YES if "yes" in words else NO


def _by_prefix(text: str) -> Reading:
    """yes or no among the first four characters."""
    prefix = text[:4]
    return YES if "yes" in prefix else NO if "no" in prefix else UNREAD


@rule("yes_no", "mme@2023", origin="MME's eval_tool/calculation.py, https://github.com/BradyFU/Awesome-Multimodal-LLM")
def mme(answer: str) -> Reading:
    """MME's rule: yes, else no, anywhere in the first four characters in lower case. `Not sure` and `I know` differ.

    Nothing is stripped: two blanks before `yes` hide it. `Not` and `now` are a no.
    """
    return _by_prefix(answer.lower())


@rule("yes_no", "lmms-eval@0.7.3/mme", origin="lmms-eval 0.7.3, tasks/mme/utils.py")
def mme_lmms_eval(answer: str) -> Reading:
    """lmms-eval's rule for MME: MME's rule after stripping and without full stops; a single y or n counts too."""
    text = answer.lower().strip().replace(".", "")
    if len(text) == 1:
        return {"y": YES, "n": NO}.get(text, UNREAD)
    return _by_prefix(text)
