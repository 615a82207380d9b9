"""Choices: which letter does an answer to a multiple-choice question state?

A rule is a function `rule(answer, options) -> Reading`. `options` maps the letters of the question to their texts, in
order. The reading has the letter, or nothing, or the letters among which the origin of the rule draws one. The
rules of single benchmarks come last: MMStar, BLINK, Video-MME, OmniBench, MMAU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from multimodal_eval.core.rules import rule
from multimodal_eval.evaluation.rules._choice_default import read_choice
from multimodal_eval.evaluation.rules._readings import UNREAD, Options, Reading, drawn, read

__all__ = [
    "answer_line",
    "blink",
    "can_infer",
    "default_choice",
    "first_word",
    "forms_of",
    "in_parentheses",
    "last_between_blanks",
    "last_of",
    "mcq_extract",
    "mmau",
    "mmmu",
    "mmmu_lmms_eval",
    "mmmu_pro",
    "mmmu_seeded",
    "mmstar",
    "omni_bench",
    "science_qa",
    "seed_bench",
    "video_mme",
    "video_mme_vlmevalkit",
]


@lru_cache(maxsize=4096)
def forms_of(letters: tuple[str, ...], before: str, after: str) -> tuple[tuple[str, str], ...]:
    """(letter, form) for every letter; a form is the letter between two marks."""
    return tuple((letter, before + letter + after) for letter in letters)


def last_of(text: str, forms: Iterable[tuple[str, str]]) -> str:
    """The letter whose form occurs last; the first letter if none occurs."""
    best, place = "", -2
    for letter, form in forms:
        if (start := text.rfind(form)) > place:
            best, place = letter, start
    return best


def in_parentheses(text: str, letters: tuple[str, ...]) -> str | None:
    """The letter that is last in parentheses, as in `(B)`."""
    if "(" not in text:
        return None
    forms = [pair for pair in forms_of(letters, "(", ")") if pair[1] in text]
    return last_of(text, forms) if forms else None


def last_between_blanks(text: str, letters: tuple[str, ...], before: str, after: str) -> str | None:
    """Of the letters with these marks, the one that is last between two blanks; the first if none of them is."""
    matches = [letter for letter, form in forms_of(letters, before, after) if form in text]
    if len(matches) < 2:
        return matches[0] if matches else None
    return last_of(text, forms_of(tuple(matches), " ", " "))


_ANSWER = re.compile("[aA][nN][sSſ][wW][eE][rR]")  # the same as with re.I, but searched faster
_MMMU_PROGRAM = "MMMU's evaluation program, https://github.com/MMMU-Benchmark/MMMU"


@rule("choice", "mmeval@1", origin="multimodal_eval, the default")
def default_choice(answer: str, options: Options) -> Reading:
    r"""The letter that a reader would take as the answer.

    Reasoning in `<think>` is left out. In this order: a boxed or tagged answer; the last statement of an answer
    ("Answer: B", "the answer is not A but B", "正确答案是B"); an answer that is a letter, starts with one or ends with
    one, with any of the usual marks (`**B**`, `(B)`, `B.`, `option B`); an answer that is the text of an option; the
    only letter or the only text of an option that the answer mentions. Nothing is read if the answer names several
    options and states none of them. No letter is drawn.
    """
    return read_choice(answer, options)


# MMMU and its descendants


_STRIPPED = (",", ".", "!", "?", ";", ":", "'")  # one after the other, each once


def _padded(answer: str, marks: Iterable[str] = _STRIPPED) -> str:
    for mark in marks:
        answer = answer.strip(mark)
    return f" {answer} "


def _by_text(text: str, options: Options) -> str | None:
    """The option whose text occurs last in an answer of more than five words."""
    if len(text.split(None, 5)) <= 5:
        return None
    lowered = text.lower()
    forms = [(letter, form) for letter, option in options.items() if (form := option.lower()) in lowered]
    return last_of(lowered, forms) if forms else None


def _as_in_mmmu(answer: str, options: Options) -> Reading:
    """The rule of MMMU as lmms-eval and MMMU-Pro have it: a letter before a blank or a full stop counts too."""
    text, letters = _padded(answer), tuple(options)
    letter = (
        in_parentheses(text, letters)
        or last_between_blanks(text, letters, "", " ")
        or last_between_blanks(text, letters, "", ".")
        or _by_text(text, options)
    )
    return read(letter) if letter else drawn(options)


@rule("choice", "mmmu-pro@2025", origin=f"mmmu-pro/evaluate.py of {_MMMU_PROGRAM} (bb0b95a)")
def mmmu_pro(answer: str, options: Options) -> Reading:
    """MMMU-Pro's rule: the only option letter after the last `Answer:`, else the rule `lmms-eval@0.7.3/mmmu`.

    If the text after the last `Answer:` contains exactly one of the letters anywhere, it is the answer: a capital in a
    word counts. If no letter is found in any way, the origin draws one.
    """
    place = answer.rfind("Answer:")
    if place >= 0:
        stated = answer[place + len("Answer:") :]
        matches = [letter for letter in options if letter in stated]
        if len(matches) == 1:
            return read(matches[0])
    return _as_in_mmmu(answer, options)


@rule("choice", "mmmu@2024", origin=f"eval/eval_utils.py of {_MMMU_PROGRAM} (44b45b5)")
def mmmu(answer: str, options: Options) -> Reading:
    """MMMU's rule: the last letter in parentheses, else the last between blanks, else the last option text.

    The text of an option counts only in answers of more than five words. If nothing is found, the origin draws a
    letter.
    """
    text, letters = _padded(answer), tuple(options)
    letter = in_parentheses(text, letters) or last_between_blanks(text, letters, " ", " ") or _by_text(text, options)
    return read(letter) if letter else drawn(options)


@rule("choice", "mmmu@2024/seed42", origin="as mmmu@2024, with the seed 42 that the program sets")
def mmmu_seeded(answer: str, options: Options) -> Reading:
    """As `mmmu@2024`; letters are drawn as the origin draws them, from one sequence in the order of the data.

    The order must be that of the origin: by subject in alphabetical order, then by row.
    """
    return mmmu(answer, options)


@rule("choice", "lmms-eval@0.7.3/mmmu", origin="lmms-eval 0.7.3, tasks/_task_utils/mmmu_mcq_utils.py")
def mmmu_lmms_eval(answer: str, options: Options) -> Reading:
    """lmms-eval's rule for MMMU: the last letter in parentheses, else one before a blank, a full stop, else the text.

    Of several letters before a blank or a full stop, the one that is last between two blanks counts, and the first of
    the question if none of them is. A capital at the end of a word counts ("USA is"). The text of an option counts only
    in answers of more than five words. If nothing is found, the origin draws a letter.
    """
    return _as_in_mmmu(answer, options)


# lmms-eval's mcq_extract


_MCQ_STRIPPED = (*_STRIPPED, '"')
# By what they contain, so that one search can exclude several.
_PHRASES: dict[str, tuple[str, ...]] = {
    "answer is": (
        *("the answer is", "answer is", "the correct answer is", "correct answer is", "the best answer is"),
        *("best answer is", "my answer is"),
    ),
    "option is": ("the correct option is", "correct option is", "the best option is", "best option is"),
    "choice is": ("the choice is", "choice is", "the correct choice is", "correct choice is", "my choice is"),
    "i ": ("i choose", "i select", "i pick"),
}
_OTHER_PHRASES = ("옵션", "정답은", "답은", "답:", "答案是", "答案为", "选", "答えは")
_MARKED = (("(", ")"), ("", "."), ("", ":"), ("", ")"), ("", " "))


@rule("choice", "lmms-eval@0.7.3/mcq_extract", origin="lmms-eval 0.7.3, tasks/_task_utils/mcq_extract.py")
def mcq_extract(answer: str, options: Options) -> Reading:
    """lmms-eval's general rule: the letter in the most telling place; of several such places, the last.

    In this order: the start of the answer, its end (both not next to a letter of the alphabet), after a phrase such as
    "the answer is" (the last first occurrence of any option letter, wherever it is), in `(B)`, `B.`, `B:`, `B)`, before
    a blank, anywhere. Nothing is read if no letter occurs.
    """
    if not answer or answer.isspace():
        return UNREAD
    text = _padded(answer.strip(), _MCQ_STRIPPED)
    letters, stripped = tuple(options), text.strip()
    letter = _at_the_edge(stripped, letters) or _after_phrase(text, letters)
    if letter:
        return read(letter)
    for before, after in _MARKED:
        forms = [pair for pair in forms_of(letters, before, after) if pair[1] in text]
        if forms:
            return read(last_of(text, forms))
    forms = [(letter, letter) for letter in letters if letter in text]
    return read(last_of(text, forms)) if forms else UNREAD


def _at_the_edge(text: str, letters: Iterable[str]) -> str | None:
    """The letter with which the text starts, else the one with which it ends."""
    letters = tuple(letters)
    is_start = len(text) == 1 or not text[1:2].isalpha()
    if is_start and text.startswith(letters):
        return next(letter for letter in letters if text.startswith(letter))
    if (len(text) == 1 or not text[-2:-1].isalpha()) and text.endswith(letters):
        return next(letter for letter in letters if text.endswith(letter))
    return None


def _after_phrase(text: str, letters: tuple[str, ...]) -> str | None:
    """The last of the letters to which the phrases lead: each leads to the next occurrence of every letter."""
    lowered = text.lower()
    phrases = [phrase for part, group in _PHRASES.items() if part in lowered for phrase in group]
    if not lowered.isascii():
        phrases += _OTHER_PHRASES
    starts = {place + len(phrase) for phrase in phrases if (place := lowered.find(phrase)) >= 0}
    best, last = None, -1
    for start in sorted(starts, reverse=True):
        for letter in letters:
            if (place := text.find(letter, start)) > last:
                best, last = letter, place
        if best is not None:  # an earlier phrase leads to earlier letters
            break
    return best


# VLMEvalKit


_API_FAILED = "Failed to obtain answer via API"
_REFUSALS = (
    "Sorry, I can't help with images of people yet.",
    "I can't process this file.",
    "I'm sorry, but without the image provided",
    "Cannot determine the answer",
)
_REFUSED = "Z"  # VLMEvalKit's letter for an answer that refuses or fits no option
_SEPARATORS = ".()[],:;!*#{}"
_AS_BLANKS = str.maketrans(dict.fromkeys(_SEPARATORS, " "))
_ANSWER_IS = re.compile(r"answer\s++is\s++\**+([a-d])", re.I)
_NEAR_THE_END = 4  # words, of which the letter is the first
_UPPERCASE = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@lru_cache(maxsize=1024)
def _as_words(letters: tuple[str, ...]) -> re.Pattern[str]:
    """Any of the letters as a word; the separators of VLMEvalKit and white space end a word."""
    edge, any_letter = rf"\s{re.escape(_SEPARATORS)}", "|".join(map(re.escape, letters))
    if all(len(letter) == 1 for letter in letters):  # a search for characters is faster than one for their context
        return re.compile(rf"(?:{any_letter})(?<![^{edge}](?:{any_letter}))(?![^{edge}])")
    return re.compile(rf"(?<![^{edge}])(?:{any_letter})(?![^{edge}])")


@rule("choice", "vlmevalkit@e8e78f05/can_infer", origin="VLMEvalKit e8e78f05, vlmeval/utils/matching_util.py")
def can_infer(answer: str, options: Options) -> Reading:
    """VLMEvalKit's rule without its judge: one letter near the end, else "answer is B", else one option's text.

    Punctuation separates words. If exactly one letter of the question occurs as a word, it counts if its first
    occurrence is one of the last four words. Otherwise the first "answer is" before A, B, C or D in any case counts,
    also at the start of a word: "answer is about" gives A. Otherwise an answer that is at most twice as long as all
    options together is searched for their texts; exactly one must occur. A refusal, or the word `Z`, gives Z.
    VLMEvalKit asks a judge model if nothing is found.
    """
    if _API_FAILED not in answer:
        if any(refusal in answer for refusal in _REFUSALS):
            return read(_REFUSED)
        letter = _only_letter(answer, tuple(options)) or _after_answer_is(answer)
        if letter is not None and (letter in options or letter == _REFUSED):
            return read(letter)
    return _only_text(answer, options)


def _after_answer_is(answer: str) -> str | None:
    for word in _ANSWER.finditer(answer):
        match = _ANSWER_IS.match(answer, word.start())
        if match is not None:
            return match[1].upper()
    return None


def _only_letter(answer: str, letters: Sequence[str]) -> str | None:
    first = None
    for match in _as_words(tuple(letters)).finditer(answer):
        if first is None:
            first = match
        elif match[0] != first[0]:
            return None
    if first is None:
        is_refused = _REFUSED in answer and _as_words((_REFUSED,)).search(answer) is not None
        return _REFUSED if is_refused else None
    rest = answer[first.start() :].translate(_AS_BLANKS)
    return first[0] if len(rest.split(None, _NEAR_THE_END)) <= _NEAR_THE_END else None


def _only_text(answer: str, options: Options) -> Reading:
    lowered = answer.lower()
    if len(lowered) > 2 * sum(map(len, options.values())) or not all(letter in _UPPERCASE for letter in options):
        return UNREAD
    matches = [letter for letter, text in options.items() if text.lower() in lowered]
    return read(matches[0]) if len(matches) == 1 else UNREAD


# inspect_ai


_S = r"[A-Za-z\d ,]"  # what an answer line may contain
_AS_MATHS = re.compile(rf"\$\s*+([A-Za-z\d]{_S}*+)\s*+\$")
_AS_BOLD = re.compile(rf"\*\*\s*+([A-Za-z\d]{_S}*+)\s*+\*\*")
_PARENTHESES = r"(\s*+)\(([A-Za-z\d])\)(?=\s*+(?:[,.]|\Z)|[^\S\n]*+\n)"
_PARENTHESES_FIRST, _PARENTHESES_LATER = re.compile(_PARENTHESES, re.I), re.compile(f"([:,]){_PARENTHESES}", re.I)
_LINE_ENDS = r"(?=[^\S\n]*+\n|\s*+(?:\.|\Z))"
# The second alternative is a line without an answer: only blanks follow.
_ANSWER_LINE = re.compile(rf"^answer\s*+:(?:\s*+({_S}++){_LINE_ENDS}|(?=[^\S ]*+ {_LINE_ENDS}))", re.I | re.M)
_ANSWER_ANYWHERE = re.compile(rf"answer\s*:\s*({_S}+)(?:\W|\Z)", re.I)


def _content(match: re.Match[str]) -> str:
    return match[1].rstrip(" ")


@rule("choice", "inspect@0.3.285/multiple_choice", origin="inspect_ai 0.3.285, solver multiple_choice, scorer choice")
def answer_line(answer: str, options: Options) -> Reading:
    """inspect_ai's rule: the letter on the last line `ANSWER: B`, else after the last `ANSWER:` anywhere.

    Case does not matter. `$B$`, `**B**` and `(B)` are read as B. The line must have one letter of the question and
    nothing else; a full stop, and what follows it, is ignored. Otherwise nothing is read.
    """
    if ":" not in answer or _ANSWER.search(answer) is None:
        return UNREAD
    text = answer
    if "$" in text:
        text = _AS_MATHS.sub(_content, text)
    if "**" in text:
        text = _AS_BOLD.sub(_content, text)
    if "(" in text:
        first = _PARENTHESES_FIRST.match(text)
        text = text if first is None else first[1] + first[2] + text[first.end() :]
        text = _PARENTHESES_LATER.sub(r"\1\2\3", text)
    lines = [line for word in _ANSWER.finditer(text) if (line := _ANSWER_LINE.match(text, word.start())) is not None]
    stated = (lines[-1][1] or "") if lines else next(reversed(_ANSWER_ANYWHERE.findall(text)), None)
    if stated is None:
        return UNREAD
    matches = [letter for letter in stated.strip().rstrip(".").upper().split(",") if letter]
    return read(matches[0]) if len(matches) == 1 and matches[0] in options else UNREAD


# Registers the rules of single benchmarks, which are listed after these.


_MMSTAR_STARTS = ("", "(", "option ", "the answer is ")


@rule("choice", "mmstar@2024", origin="MMStar's eval/vlmeval/evaluate/mmstar.py (88f243a)")
def mmstar(answer: str, options: Options) -> Reading:
    """MMStar's rule: the letter with which the answer starts, also after `(`, "option " or "the answer is ".

    Case does not matter, and the letter may be the start of a word: "apple" is A.
    """
    text = answer.lower().strip().replace("\n", " ")
    for start in _MMSTAR_STARTS:
        if text.startswith(start):
            for letter in options:
                if text[len(start) : len(start) + 1] == letter.lower():
                    return read(letter)
    return UNREAD


_BLINK_LETTERS = "ABCDE"


@rule("choice", "blink@2024", origin="analyze_answer in eval/test_benchmark.py of BLINK (2d6a779), without its judge")
def blink(answer: str, options: Options) -> Reading:
    """BLINK's rule: the only `(B)` among the words of the last paragraph, else among all words.

    A paragraph ends at a blank line, and white space separates words: `(B),` and `(B).` do not count. An answer that is
    a letter from A to E, in parentheses or not, is that letter. BLINK asks GPT-3.5 if nothing is read
    (`fallback: judge`).
    """
    bare = answer[1:2] if len(answer) == 3 and answer[0] + answer[2] == "()" else answer
    if len(bare) == 1 and bare in _BLINK_LETTERS:
        return read(bare)
    forms = {f"({letter})": letter for letter in options}
    stated = forms.keys() & answer.split()
    if not stated:
        return UNREAD
    concluded = forms.keys() & answer.rpartition("\n\n")[2].split()
    for words in (concluded, stated):
        if len(words) == 1:
            return read(forms[words.pop()])
    return UNREAD


# Some phrases are two that the origin joins by mistake, so that neither of them is removed from an answer.
_VIDEO_MME_PHRASES = (
    *("The best answer is", "The correct answer is", "The answer is", "The answer"),
    *("The best option isThe correct option is", "Best answer:Best option:"),
)
_A_TO_D = re.compile("[ABCD]")


def _first_capital(answer: str, removed: tuple[str, ...]) -> Reading:
    for phrase in removed:
        answer = answer.replace(phrase, "")
    match = _A_TO_D.search(answer)
    return UNREAD if match is None else read(match[0])


@rule("choice", "video-mme@2024", origin="evaluation/eval_your_results.py of Video-MME (06c2315)")
def video_mme(answer: str, options: Options) -> Reading:
    """Video-MME's rule: the first capital A, B, C or D, after phrases such as "The best answer is" are removed.

    A capital in a word counts: "A man walks: C" is A, "Answer: C" is A, and "Best option: D" is B. The origin leaves an
    answer without such a capital out of the accuracy (`unread: unscored`).
    """
    return _first_capital(answer, _VIDEO_MME_PHRASES)


@rule("choice", "vlmevalkit@0.0.20/video-mme", origin="vlmeval/dataset/utils/videomme.py of ms-vlmeval 0.0.20")
def video_mme_vlmevalkit(answer: str, options: Options) -> Reading:
    """As `video-mme@2024`, but "Answer:" and "Option:" are removed, too: "Answer: C" is C."""
    return _first_capital(answer, (*_VIDEO_MME_PHRASES, "Answer:", "Option:"))


@rule("choice", "lmms-eval@0.7.3/omni_bench", origin="lmms-eval 0.7.3, tasks/omni_bench/utils.py")
def omni_bench(answer: str, options: Options) -> Reading:
    """lmms-eval's rule for OmniBench: the last letter in parentheses, else one before a blank, else before a full stop.

    As `lmms-eval@0.7.3/mmmu`, but only white space is removed around the answer, the texts of the options do not count,
    and no letter is drawn.
    """
    text, letters = f" {answer.strip()} ", tuple(options)
    letter = (
        in_parentheses(text, letters)
        or last_between_blanks(text, letters, "", " ")
        or last_between_blanks(text, letters, "", ".")
    )
    return read(letter) if letter else UNREAD


_WORD = re.compile(r"\w+")


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


@rule("choice", "mmau@2024", origin="string_match in evaluation.py of MMAU (110127f)")
def mmau(answer: str, options: Options) -> Reading:
    """MMAU's rule: the option all of whose words the answer has, without any word that only other options have.

    Words are compared in lower case, and letters are not read: "B" fits no option, and "(A) Man" does not fit "Man" if
    another option is "A Woman". "A man, not a woman" fits neither. MMAU leaves rows without an answer out.
    """
    said = frozenset(_WORD.findall(answer.lower()))
    if not said:
        return UNREAD
    words = {letter: _words(text) for letter, text in options.items()}
    for letter, expected in words.items():
        if expected <= said and not any((other - expected) & said for other in words.values()):
            return read(letter)
    return UNREAD


@rule("choice", "vsi-bench@2024", origin="lmms_eval/tasks/vsibench/utils.py of VSI-Bench; lmms-eval 0.7.3 has the same")
def first_word(answer: str, options: Options) -> Reading:
    """VSI-Bench's rule for choices: the first word, without full stops at its end, is the letter in any case.

    Only a blank ends a word, so an answer that starts with one is not read.
    """
    word = answer.split(" ", 1)[0].rstrip(".").strip().upper()
    return read(word) if word in options else UNREAD


@rule("choice", "lmms-eval@0.7.3/seedbench", origin="lmms-eval 0.7.3, tasks/seedbench/utils.py")
def seed_bench(answer: str, options: Options) -> Reading:
    """lmms-eval's rule for SEED-Bench: the first character after white space, which must be the letter itself."""
    letter = answer.strip()[:1]
    return read(letter) if letter in options else UNREAD


@rule("choice", "lmms-eval@0.7.3/scienceqa", origin="lmms-eval 0.7.3, tasks/scienceqa/utils.py, after LLaVA")
def science_qa(answer: str, options: Options) -> Reading:
    """lmms-eval's rule for ScienceQA: the answer is the letter in any case, or starts with it and a full stop."""
    text = answer.strip()
    letter = text[:1] if text[:1].isupper() and text[1:2] == "." else text.upper()
    return read(letter) if letter in options else UNREAD
