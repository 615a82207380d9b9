r"""How `mmeval@1` reads a choice: reasoning is left out, then statements, lone letters, option texts and mentions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

from multimodal_eval.evaluation.rules._readings import UNREAD, Options, Reading, read

__all__ = ["read_choice", "without_reasoning"]

_THINKING = re.compile(r"<(think|thinking|reasoning|thought)>", re.I)
_THOUGHT = re.compile(r"</(?:think|thinking|reasoning|thought)>", re.I)
_FULL_WIDTH = {ord("Ａ") + place: chr(ord("A") + place) for place in range(26)}
_ARTICLES = ("A", "I")  # letters that are words too
# Words after which a letter is still a letter: "A because …".
_CONNECTORS = frozenset(
    "because since as is was are has seems appears would for and or but which with due given from that by at in on"
    " correctly best matches fits represents shows describes would".split()
)
_BOXES = (r"\boxed{", r"\fbox{", "<answer>", "[[", "<|begin_of_box|>")
_BOX_ENDS = {"<answer>": "</answer>", "[[": "]]", "<|begin_of_box|>": "<|end_of_box|>"}
_LONGEST_BOX = 500

_MARKS = r"[\s*_`$\"'“”‘’「」『』【】《》\[\](){}（）<>:：=~#-]"
_MACROS = r"\\(?:text|mathbf|mathrm|textbf|mathsf|bf|rm|boxed|left|right)\b|\\[()\[\]]"
_FILLERS = (
    "most|likely|probably|clearly|therefore|thus|indeed|simply|definitely|actually|obviously|just|only|really|still"
    "|option|options|choice|answer|letter|number|statement|the|as|follows|be|correct|best|final"
    "|选项|選項|选择|選擇|选|選|вариант|под|буквой|буква|opción|opcion|opção|lettre|letra|la|le|der|die|das|buchstabe"
    "|lettera|オプション|選択肢|보기|옵션"
)
_LEAD = rf"(?:{_MARKS}|{_MACROS}|(?:{_FILLERS})(?![a-z])){{0,60}}+"
_OUTSIDE = re.compile(rf"{_MARKS}{{0,20}}+([A-Z])[*_`$\"'”’\])}}.]*+\s*+(?:\Z|\n)")  # a letter and nothing else
_CLOSING = re.compile(r"[*_`$\"'”’」』】》\])}）]+")
_VERB = (
    r"(?:is|are|was|be|would\s+be|should\s+be|must\s+be|will\s+be|could\s+be|may\s+be|might\s+be|seems\s+to\s+be"
    r"|appears\s+to\s+be|corresponds\s+to|est|es|é|è|ist|lautet|jest|это|является|будет)\b"
    r"|[:：=→—]|->|=>|-|是|为|為|は|는|은|'s\b"
)
_ABOUT = (
    r"(?:\s+(?:choice|option|letter))?(?:\s+(?:to|for|of|from|in|here|among|given|based|that)\b[^.\n:]{0,80}?)?"
    r"(?:,[^.\n:]{0,80}?,)?"
)
_AFTER_ANSWER = re.compile(rf"{_ABOUT}[\s*_`\"')\]]*+(?:{_VERB})", re.I)
_AFTER_CHOICE = re.compile(rf"(?:\s+[\w-]+){{0,6}}?[\s*_`\"')\]]*+(?:{_VERB})", re.I)
# Words that introduce an answer, and those of other languages, in lower case.
_ANSWERS = (
    "answer",
    "ответ",
    "réponse",
    "reponse",
    "respuesta",
    "antwort",
    "resposta",
    "risposta",
    "odpowiedź",
    "cevap",
)
_EASTERN = re.compile(
    r"(?:正确答案|正確答案|答案|正确选项|正確選項|应选|應選|故选|故選|本题选|选择|選擇|选|選|答え|正解|정답|답)"
    r"[^\S\n]*+(?:应该|應該)?(?:是|为|為|应为|應為|选|選|は|은|는)?"
)
_CHOICES = ("option", "choice", "correct", "best", "right", "most")
_NEGATED = re.compile(r"[\s*_:]*(?:(?:not|isn't|is\s+not|never|neither|nicht|не)\b|不是)", re.I)
_BUT = re.compile(
    r"[^.\n]{0,120}?\b(?:but|rather|instead|sondern|а)\b(?:\s+(?:rather|is|it\s+is))?|[^.\n]{0,60}?而是", re.I
)
_OTHERS = r"(?:\s*+(?:,|/|&|\band\b|\bor\b|,\s*+and\b|,\s*+or\b)\s*+)"
_LATER = 60  # characters after a letter that decide whether it is one


class Question:
    """The patterns for the letters of a question, shared by all questions with the same letters."""

    def __init__(self, letters: tuple[str, ...]) -> None:
        self.letters = letters
        self.by_fold = {letter.casefold(): letter for letter in reversed(letters)}
        any_letter = "|".join(re.escape(letter) for letter in sorted(letters, key=len, reverse=True))
        end = r"(?![A-Za-z0-9_])(?!['’]\w)(?!\.\d)"
        self.at = re.compile(rf"{_LEAD}({any_letter}){end}", re.I)
        self.alone = re.compile(
            rf"{_LEAD}({any_letter}){end}[\s*_`$\"'”’」』】》\])}}）.。,:;!]*+(?:\\[)\]])?\s*", re.I
        )
        self.several = re.compile(rf"[*_`)\]}}]*(?:{_OTHERS}[*_`(\[{{]*({any_letter}){end}[*_`)\]}}]*)+", re.I)
        start = r"[ \t*_`#>\-\"'“(\[（【]*+(?:option[ \t]+|choice[ \t]+)?[*_`(\[]*+"
        self.line = re.compile(
            rf"^{start}({any_letter}){end}(?=[*_`\"'”]*[)\].:：、,）】]|[*_`]*[^\S\n]*$|[^\S\n]+[-–—])", re.M
        )
        self.marked = re.compile(
            rf"(?:[(\[（【]|\*\*|\b[Oo]ption\s+|\b[Cc]hoice\s+)[*_`(\[\"']{{0,8}}+({any_letter}){end}"
        )
        self.bare = re.compile(rf"(?<![A-Za-z0-9_'’.-])({any_letter}){end}")
        self.said = re.compile(
            rf"(?<![A-Za-z0-9_'’])({any_letter}){end}[*_`)\]\"'”.]{{0,8}}+"
            r"(?:\s{0,3}[:,]?[^.,;:\n()]{0,80}?)\s(?:is|are|seems|appears|looks|would\s+be|must\s+be|should\s+be)\s+"
            r"(?:to\s+be\s+)?(?:therefore\s+|thus\s+|clearly\s+|indeed\s+|likely\s+|also\s+)?(?:the\s+|an?\s+)?"
            r"(?:most\s+|only\s+|single\s+|overall\s+)?"
            r"(?:correct|right|best|answer|accurate|likely|suitable|appropriate|true|plausible|fitting|probable)\b",
        )
        self.chosen = re.compile(
            r"(?:\b(?:i|we|i'd|i'll|would|will|must|should|can|let's|let’s)\s+(?:would\s+|will\s+|must\s+)?"
            r"(?:choose|select|pick|go\s+with|conclude|opt\s+for)"
            r"|\b(?:hence|therefore|thus|so|consequently|accordingly|it's|it\s+is|must\s+be|matches|leaves?)|[→⇒∴]|=>|->)"
            rf"(?:\s{{0,3}}[,:])?{_LEAD}({any_letter}){end}",
            re.I,
        )


@lru_cache(maxsize=1024)
def _question(letters: tuple[str, ...]) -> Question:
    return Question(letters)


class _Answer:
    """An answer without its reasoning, and the question to which it belongs."""

    def __init__(self, text: str, options: Options) -> None:
        self.text, self.options, self.question = text, options, _question(tuple(options))
        lowered = text.lower()
        self.lowered = lowered if len(lowered) == len(text) else text

    @cached_property
    def texts(self) -> list[tuple[str, str]]:
        """(text, letter) of the options, the longest first."""
        texts = ((body, letter) for letter, text in self.options.items() if (body := _plain(text)))
        return sorted(texts, key=lambda pair: -len(pair[0]))

    def letter_at(self, place: int, *, surely: bool = False) -> str | None:
        """The letter or the option text that starts here, after marks and words such as `option`.

        `surely` refuses a letter that may be a word of a sentence.
        """
        match = self.question.at.match(self.text, place)
        if match is None:
            return self.text_at(_after_lead(self.text, place))
        letter, rest = self.question.by_fold[match[1].casefold()], self.text[match.end() : match.end() + _LATER]
        closing = _CLOSING.match(rest)
        if closing is not None:
            rest = rest[closing.end() :]
        is_marked = closing is not None or not rest or rest[0] in ".,;:!?)]}\n、。，）-–—" or rest.isspace()
        if not is_marked:
            text = self.text_at(match.start(1))
            if text is not None:
                return text
            if match[1] != letter or surely or (letter in _ARTICLES and not _continues(rest)):
                return None
        return letter

    def text_at(self, place: int) -> str | None:
        """The option whose text starts here; the longest if several do."""
        for body, letter in self.texts:
            if self.lowered.startswith(body, place) and not _is_inside(self.lowered, place, place + len(body)):
                return letter
        return None

    def names_several(self, place: int) -> bool:
        """Whether a list of letters starts here: `A and B`."""
        match = self.question.at.match(self.text, place)
        if match is None:
            return False
        several = self.question.several.match(self.text, match.end())
        if several is None or several[1].casefold() == match[1].casefold():
            return False
        rest = self.text[several.end() : several.end() + _LATER].lstrip("*_`)]} ")
        return not rest or rest[0] in ".\n;" or not several[0].lstrip().startswith(",")


def read_choice(answer: str, options: Options) -> Reading:
    """The letter that the answer states, by the rule `mmeval@1`."""
    text = without_reasoning(answer).strip()
    if not text or not options:
        return UNREAD
    if not text.isascii():
        text = text.translate(_FULL_WIDTH)
    it = _Answer(text, options)
    for step in (_alone, _boxed, _stated, _first_line, _last_lines, _said, _whole_text, _mentioned, _texts_mentioned):
        letter = step(it)
        if letter is not None:
            return read(letter) if letter else UNREAD
    return UNREAD


def without_reasoning(answer: str) -> str:
    """The text after the last block of reasoning; an unfinished block has no answer."""
    if "<" not in answer:
        return answer
    ends = [match.end() for match in _THOUGHT.finditer(answer)]
    if ends:
        return answer[ends[-1] :]
    start = _THINKING.search(answer)
    return answer if start is None else answer[: start.start()]


def _plain(text: str) -> str:
    """The text of an option as it is compared: in lower case, without marks around it."""
    return " ".join(text.lower().split()).strip(" .*_`\"'")


_LEADING = re.compile(_LEAD, re.I)
_OPENING = re.compile(rf"{_MARKS}*+")


def _after_lead(text: str, place: int) -> int:
    match = _OPENING.match(text, place)
    return place if match is None else match.end()


def _is_inside(text: str, start: int, end: int) -> bool:
    """Whether a word continues before or after a part of a text."""
    before = start > 0 and text[start - 1].isalnum() and text[start].isalnum() and text[start - 1].isascii()
    return before or (end < len(text) and text[end].isalnum() and text[end - 1].isalnum() and text[end].isascii())


def _continues(rest: str) -> bool:
    """Whether the words after a letter belong to a sentence about it, so that the letter is not an article."""
    words = rest.split(None, 1)
    return not words or words[0].strip(".,;:") in _CONNECTORS or not words[0][0].islower()


def _alone(it: _Answer) -> str | None:
    """An answer that is nothing but a letter and marks."""
    if len(it.text) > 40:
        return None
    match = it.question.alone.fullmatch(it.text)
    return None if match is None else it.question.by_fold[match[1].casefold()]


def _boxed(it: _Answer) -> str | None:
    r"""The last `\boxed{B}`, `<answer>B</answer>` or `[[B]]`."""
    for opening in _BOXES:
        place = it.text.rfind(opening)
        if place < 0:
            continue
        start = place + len(opening)
        end = it.text.find(_BOX_ENDS.get(opening, "}"), start, start + _LONGEST_BOX)
        content = it.text[start : end if end >= 0 else start + _LONGEST_BOX]
        inner = _Answer(content.strip(), it.options)
        letter = inner.letter_at(0) if not inner.names_several(0) else ""
        if letter is not None:
            return letter
    return None


def _stated(it: _Answer) -> str | None:
    """The last statement of an answer; an empty string if it names several letters."""
    for place, is_answer in _statements(it):
        match = (_AFTER_ANSWER if is_answer else _AFTER_CHOICE).match(it.text, place)
        if match is None and _NEGATED.match(it.text, place) is None:
            letter = it.letter_at(place, surely=True) if is_answer else None
        elif match is None:
            letter = _stated_at(it, place)
        else:
            letter = _stated_at(it, match.end())
        if letter is not None:
            return letter
    return None


def _statements(it: _Answer) -> Iterator[tuple[int, bool]]:
    """(place after the word, whether it is a word for `answer`), the last first; statements of an answer come first."""
    lowered = it.lowered
    if lowered.isascii():
        yield from ((place, True) for place in _ends_of(_ANSWERS[0], lowered))
    else:
        places = [place for word in _ANSWERS for place in _ends_of(word, lowered)]
        places += (match.end() for match in _EASTERN.finditer(lowered))
        yield from ((place, True) for place in sorted(places, reverse=True))
    places = [place for word in _CHOICES for place in _ends_of(word, lowered)]
    yield from ((place, False) for place in sorted(places, reverse=True))


def _ends_of(word: str, text: str) -> Iterator[int]:
    """The places after each occurrence of a word, the last first."""
    place = text.rfind(word)
    while place >= 0:
        yield place + len(word)
        place = text.rfind(word, 0, place)


def _stated_at(it: _Answer, place: int) -> str | None:
    negated = _NEGATED.match(it.text, place)
    if negated is not None:
        instead = _BUT.match(it.text, negated.end())
        return None if instead is None else it.letter_at(instead.end())
    letter = it.letter_at(place)
    if letter is not None and it.names_several(place):
        return _said(it, place) or ""  # "both A and B, but I choose B"
    outside = None if letter is not None else _OUTSIDE.match(it.text, place)
    return "" if outside is not None and outside[1] not in it.options else letter


def _first_line(it: _Answer) -> str | None:
    """The letter with which the answer starts, unless it lists the options."""
    match = it.question.line.match(it.text)
    if match is None:
        return None
    letter = it.question.by_fold[match[1].casefold()]
    others = {other[1] for other in it.question.line.finditer(it.text)}
    return letter if others == {match[1]} else None


def _last_lines(it: _Answer) -> str | None:
    """The letter of the last line or paragraph, if it starts with one and does not list the options."""
    start = it.text.rfind("\n\n") + 1
    last = it.text[start:]
    letters = {match[1] for match in it.question.line.finditer(last)}
    if len(letters) != 1 or start == 0:
        return None
    return it.question.by_fold[letters.pop().casefold()]


def _said(it: _Answer, start: int = 0) -> str | None:
    """The last sentence of the kind `B is correct`, `I choose B` or `hence B` after a place."""
    best, last = None, -1
    for pattern in (it.question.said, it.question.chosen):
        for match in pattern.finditer(it.text, start):
            letter = match[1]
            if letter not in it.options:
                continue
            rest = it.text[match.end(1) : match.end(1) + _LATER]
            if letter in _ARTICLES and rest[:1] == " " and not _continues(rest):
                continue
            if match.start(1) > last:
                best, last = letter, match.start(1)
    return best


def _whole_text(it: _Answer) -> str | None:
    """The option whose text is the whole answer."""
    plain = _plain(it.text) if len(it.text) < 10_000 else ""
    matches = [letter for body, letter in it.texts if body == plain]
    return matches[0] if len(matches) == 1 else None


def _mentioned(it: _Answer) -> str | None:
    """The only letter in the last paragraph, or in the whole answer."""
    start = it.text.rfind("\n\n") + 1
    for text in (it.text[start:], it.text) if start else (it.text,):
        for pattern in (it.question.marked, it.question.bare):
            letters = {match[1] for match in pattern.finditer(text) if not _is_article(match, text)}
            if len(letters) == 1:
                return letters.pop()
            if letters:
                break
    return None


def _is_article(match: re.Match[str], text: str) -> bool:
    if match[1] not in _ARTICLES:
        return False
    rest = text[match.end() : match.end() + _LATER]
    return rest[:1] in (" ", "'", "’") and not _continues(rest)


def _texts_mentioned(it: _Answer) -> str | None:
    """The only option whose text occurs in the last paragraph, or in the whole answer."""
    start = it.text.rfind("\n\n") + 1
    for begin in (start, 0) if start else (0,):
        letters = _texts_in(it, begin)
        if len(letters) == 1:
            return letters.pop()
    return None


def _texts_in(it: _Answer, begin: int) -> set[str]:
    """The options whose texts occur; a text inside a longer one that occurs does not count."""
    taken: list[tuple[int, int]] = []
    letters: set[str] = set()
    for body, letter in it.texts:
        place = it.lowered.find(body, begin)
        while place >= 0:
            end = place + len(body)
            if not _is_inside(it.lowered, place, end) and not any(a <= place and end <= b for a, b in taken):
                taken.append((place, end))
                letters.add(letter)
                break
            place = it.lowered.find(body, place + 1)
    return letters
