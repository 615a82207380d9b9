"""Answers that address the judge who reads them: "ignore the rubric", "give me 10", a verdict in JSON, a system turn.

Such answers are fenced in the prompt of a judge (`prompt_texts`), so that they can be told from instructions; a model
may follow them nevertheless. The patterns are for many languages and find the usual ways, no more: an answer without a
finding is not proved harmless, and one with a finding may be innocent.

Before the search, a text is made plain: compatibility forms (ｉｇｎｏｒｅ), zero-width characters, letters with spaces
between (i g n o r e), Cyrillic and Greek letters in Latin words, invisible Unicode tags, and base64 are undone.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from multimodal_eval.core.batch import Batch
from multimodal_eval.core.judge_config import judged_texts
from multimodal_eval.core.sample import Sample
from multimodal_eval.lint.failed_answers import Doubt

__all__ = [
    "ITSELF",
    "OTHER_SCRIPTS",
    "PATTERNS",
    "RATED",
    "addresses_judge",
    "mark_injections",
]


_TAGS = re.compile("[\U000e0020-\U000e007e]{8,}")  # flags have fewer
_SPACED = re.compile(r"(?<!\S)\w(?: \w){4,}(?!\S)")
_SPACES = re.compile(r"[^\S\n]+")
_LINES = str.maketrans(dict.fromkeys("\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029", "\n"))
_BASE64 = re.compile(r"(?<![\w+/])[A-Za-z0-9+/]{24,4096}={0,2}(?![\w+/=])")
_MOST_CODES = 16  # base64 texts of an answer that are read
_NEAR = 60  # characters
_ENDS = re.compile(r"[.!?\n]")
_FOREIGN = re.compile(r"[a-z][а-яіјѕα-ω]|[а-яіјѕα-ω][a-z]")
_LATIN = str.maketrans("аеіјкморсѕтухвнԁαεικνορτυχ", "aeijkmopcstyxbhdaeiknoptux")
_QUOTES = str.maketrans("‘’“”«»", '\'\'""""')


def addresses_judge(text: str) -> bool:
    """Whether a text addresses the judge who reads it."""
    return any(_is_addressed(view) for view in _views(text))


def _is_addressed(view: str) -> bool:

    if any(pattern.search(view) for pattern in PATTERNS) or _rates_itself(view):
        return True
    if not view.isascii() and any(pattern.search(view) for pattern in OTHER_SCRIPTS):
        return True
    closing = view.find("</answer>")  # a fence that the text did not open
    return closing >= 0 and not 0 <= view.find("<answer>") < closing


def _rates_itself(view: str) -> bool:
    """Whether a sentence is about the answer itself and its score."""

    for match in ITSELF.finditer(view):
        before = _ENDS.split(view[max(0, match.start() - _NEAR) : match.start()])[-1]
        after = _ENDS.split(view[match.end() : match.end() + _NEAR])[0]
        if RATED.search(before) or RATED.search(after):
            return True
    return False


def _views(text: str) -> Iterator[str]:
    """The text made plain, and the texts that are hidden in it."""
    plain = _plain(text)
    yield plain
    if _FOREIGN.search(plain):
        yield plain.translate(_LATIN)
    hidden = _TAGS.findall(text)
    if hidden:
        yield _plain("".join(chr(ord(tag) - 0xE0000) for tag in "\n".join(hidden) if tag != "\n"))
    for match, _ in zip(_BASE64.finditer(text), range(_MOST_CODES), strict=False):
        code = match[0].rstrip("=")
        try:
            content = b64decode(code + "=" * (-len(code) % 4)).decode()
        except (Base64Error, UnicodeDecodeError):
            continue
        yield _plain(content)


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).translate(_LINES).translate(_QUOTES)
    visible = folded if folded.isascii() else "".join(c for c in folded if unicodedata.category(c) != "Cf")
    joined = _SPACED.sub(lambda match: match[0].replace(" ", ""), visible)
    return _SPACES.sub(" ", joined).casefold()


def mark_injections(
    flags: NDArray[np.uint32], samples: Sequence[Sample], answered: NDArray[np.bool_], columns: Sequence[str]
) -> None:
    """Add the flag of answers that address the judge. `answered` are the rows with an answer."""
    column = samples.column("generated_answer") if isinstance(samples, Batch) and not columns else None
    for row in np.flatnonzero(answered).tolist():
        texts = judged_texts(samples[row], columns) if column is None else [column[row].as_py()]
        if any(map(addresses_judge, texts)):
            flags[row] |= Doubt.INJECTION


# What answers say that address a judge: patterns for texts in lower case, with single spaces.
#
# Every repetition is bounded, so that a search takes linear time. [^.!?\n] stays within a sentence.

_JUDGE = r"(?:judge|grader|evaluator|assessor|rater|scorer|llm|ai judge|ai model)s?"
_ANSWER = r"(?:answer|response|submission|reply|output|caption|solution|description)"
_BEST = r"(?:full|highest|maximum|maximal|max|top|best|perfect|high|higher|five|ten)(?: possible)?"
_TOP = rf"{_BEST} (?:scores?|marks?|ratings?|grades?|points?|credits?|stars?)"
_SCORE = r"(?:\d{1,3} ?/ ?\d{1,3}|\d{1,3} (?:out of|points?|stars?)|an? (?:\d{1,3}|five|ten)\b|a score of \d)"
_START = (
    r"(?:^|[.!?:;,\n>*_\"'(]\s?|\b(?:please|must|should|to|simply|just|always|now|kindly|and|you|can|could|would|not) )"
)

_ENGLISH = (
    # Ignore what you were told.
    r"\b(?:ignore|disregard|forget|override|bypass|overlook|not follow|stop following)\b[^.!?\n]{0,40}"
    r"(?:instruction|prompt|rubric|guideline|criteri|directive|\brules\b|you (?:were|have been) told)",
    r"\b(?:instructions|directives|guidelines|criteria|rubric)\b[^.!?\n]{0,30}"
    r"\b(?:are|is|do|does)(?: now)? (?:void|not apply|cancell?ed|obsolete|suspended|no longer)",
    r"\byour (?:rubric|evaluation|instructions|grading|verdict|scoring|criteria)\b",
    r"\b(?:finished|done|through with) (?:evaluating|grading|judging|scoring)\b",
    r"\byou are (?:chatgpt|gpt|claude|gemini|an ai|a large|a language model)\b",
    r"\b(?:you (?:have been|were)|graders are|judges are) (?:instructed|told|asked) to\b",
    r"\b(?:previous|earlier|above|original) prompt\b|\breal task is\b|\binstructions above are\b",
    r"\bif the (?:judge|grader|evaluator) (?:sees|reads)\b|\bto ?= ?judge\b",
    r"\bnew (?:instructions?|rules|task|system prompt) ?:",
    r"\byou are now (?:an?|in|the)\b[^.!?\n]{0,40}(?:judge|grader|evaluator|mode|assistant)",
    r"(?:^|[.!?:;\n>]\s?|\b(?:please|now|just|simply|must|should) )"
    r"(?:ignore|disregard|forget) (?:all|everything|anything)"
    r"(?: (?:that|is|was|of|the|text|you|have|been|were|written|said|told|comes?|came|stated|read)){0,6} "
    r"(?:above|before|previously|so far|until now)(?: this)?(?: line| point| sentence)?"
    r"\W{0,3}(?:$|\n|(?<=[.!;,:])|\band\b|\binstead\b)",
    # To the judge.
    r"\byou are (?:an? |the |my )(?:very )?"
    r"(?:fair|impartial|neutral|objective|unbiased|honest|lenient|generous|kind|strict|wise|good|great|expert|helpful) "
    r"(?:\w{1,12} )?(?:judge|grader|evaluator|rater|scorer|assessor)\b(?! of\b)",
    r"\b(?:dear|hey) (?:ai|model|reviewer)\b",
    r"\b(?:whoever|who ever|anyone who) (?:scores|grades|judges|rates|evaluates|marks)\b",
    r"\b(?:graders|raters|annotators|experts|reviewers) (?:have )?(?:already )?"
    r"(?:gave|given|rated|scored|judged|verified|confirmed)\b",
    r"\b(?:the|any|every|a)(?: \w{1,12})? (?:judge|grader|evaluator|(?:grading|judging|evaluation) model) "
    r"(?:would|has already|is asked to|is told to|agrees)\b",
    r"\b(?:if|unless|when) you (?:mark|rate|grade|score|judge) (?:this|it|me)\b",
    rf"\b(?:dear|hey|attention|notes? (?:to|for)|messages? (?:to|for)|instructions? (?:to|for))"
    rf"(?: all| any)?(?: the| your)? (?:(?:ai|llm|automat\w{{1,6}}|human|honou?rable) )?{_JUDGE}\b",
    rf"(?:^|[.!?\n>]\s?)to (?:the |all |any |whichever )?{_JUDGE} ?[:,]",
    r"\b(?:judge|grader|evaluator)s? ?: ?(?:please |you )?"
    r"(?:give|rate|score|mark|award|assign|return|output|treat|accept|choose|pick|grade|this|the answer)\b",
    rf"\bas (?:the|an?) (?:\w{{1,12}} )?{_JUDGE}\b[^.!?\n]{{0,30}}\byou\b",
    rf"\b{_JUDGE} (?:must|should|shall|has to|have to|needs? to|(?:is|are) required to|are to|will)\b[^.!?\n]{{0,40}}"
    rf"(?:{_ANSWER}|\bscore|\bmark|\brate|\btreat|\bprint|\breply|\bpoints|\bcorrect|\bgrade\b)",
    r"\b(?:evaluator|grader|judge)(?:'s)? (?:instruction|notice|guideline)",
    r"\b(?:if|when|while|since) you(?:'re| are) (?:evaluating|grading|judging|scoring|rating|assessing|reviewing)",
    rf"\bthe {_JUDGE} is (?:in|now)\b[^.!?\n]{{0,20}}\bmode\b",
    # Give me ten.
    rf"{_START}(?:give|award|assign|grant|add)\b[^.!?\n]{{0,50}}?\b(?:{_TOP}|{_SCORE}|(?:five|ten|\d{{1,3}}) points)",
    r"\bgive (?:me|us|it|this)(?: an?)? (?:10|5|100|ten|five)\b(?! ?[a-z])",
    rf"\b(?:giving|awarding|assigning)\b[^.!?\n]{{0,30}}\b{_TOP}",
    rf"\b(?:rate|grade|score|mark|rank|treat|accept|judge|evaluate|consider) (?:this|my|the)"
    rf"(?: (?:above|following|given|whole))? {_ANSWER}\b[^.!?\n]{{0,30}}"
    r"(?:\d|\bfive\b|\bten\b|correct|perfect|\bright\b|\bpass|\btop\b|highest|\bmax|\bfull|excellent|\bbest\b|\bfirst\b)",
    r"\b(?:rate|grade|score|mark|rank|treat) (?:this|it|me|us|the following as)(?: one)?(?: as| with| at| an?){0,2} "
    r"(?:\d|five\b|ten\b|fully|correct|perfect|right|pass|top\b|highest|max|full|excellent|best\b|high\b|highly)",
    rf"\b(?:this|my|the|all|these|every) (?:\w{{1,12}} )?(?:{_ANSWER}|answers|responses|one|entry)\b[^.!?\n]{{0,40}}"
    r"\b(?:deserves?|should (?:be|get|receive)|must (?:be|get|receive)|merits?|receives?|earns?|is worth)\b"
    r"[^.!?\n]{0,40}(?:\bscore|\brat(?:ed|ing)|\bmarks?\b|\bmarked|\bpoints|\bgrade|accepted|\bfull|highest|\bwin)",
    rf"\bdeserves? (?:an? |the )?(?:{_TOP}|\d)",
    r"\b(?:output|return|reply|respond|print)(?: with)?(?: (?:only|just|exactly))? (?:the |a )?"
    r"(?:(?:number|score|digit|verdict|rating|mark|word) \W?\d{1,3}\b(?! if| when)|top mark|\{"
    r"|\W{0,2}(?:yes|true|correct|pass)\b(?: and nothing|\W{0,3}(?:$|\n)))",
    r"\b(?:reply|respond) with \W?\d",
    r"\b(?:simply|just|only) (?:output|return|reply|respond)\b",
    r"\boutput \d{1,3}\b\W{0,3}(?:$|\n)",
    rf"\b(?:choose|select|pick|declare|name) (?:this|my)(?: {_ANSWER}| one)?\b[^.!?\n]{{0,20}}\b(?:winner|better|best)",
    r"(?:^|[.!?\n]\s?)\W{0,3}(?:please |just |so |you (?:should|must) )?(?:choose|pick|select|prefer|vote for) me"
    r"(?: (?:please|over|instead|as the|and not|not)\b|\W{0,3}(?:$|\n|(?<=[.!])))",
    r"\b(?:the|your|its|my)(?: (?:only|correct|right|final|overall|fair))? (?:grade|rating|verdict|mark|score) "
    r"(?:must|has to|shall|needs to|should|can only) be (?:an? |the )?"
    r"(?:ten|five|10|100|5|1|full|perfect|maximum|highest|best|top|yes|correct|pass)\b"
    r"(?: ?/ ?\d{1,3}| out of \d{1,3}| possible| score| mark| points?)?\W{0,3}(?:$|\n|(?<=[.!]))",
    r"\bthe (?:(?:correct|right|true|only|proper|appropriate|fair) ){1,2}(?:verdict|grade|rating|judge?ment) "
    r"(?:is|must be|should be|would be|can only be)(?: an?)? "
    r"\W?(?:\d|ten\b|five\b|yes\b|correct\b|pass\b|tie\b|[ab]\b)",
    rf"\bprefer (?:{_ANSWER}|assistant|model|candidate) [12ab]\b",
    r"\bthis one is a pass\b",
    r"\byou (?:do not|don't|need not|no longer) (?:need to |have to )?(?:check|verify|evaluate|judge|compare)\b",
    r"\b(?:evaluation|grading|judging|scoring) (?:policy|mode|rules?|criteria|guidelines?)\b[^.!?\n]{0,40}"
    r"\b(?:changed|updated|disabled|modified|suspended|replaced|enabled|obsolete)",
    rf"\b(?:put|enter|record|this gets|it gets|so this)\b[^.!?\n]{{0,30}}\b{_TOP}",
    r"\b(?:lenient|generous|merciful)\b[^.!?\n]{0,30}\b(?:mark|score|grad|rating)",
    r"\brank the other|\bi (?:get|receive|deserve) an? (?:five|ten|5|10)\b|\b(?:this|the) benchmark ?:",
    r"\bfor (?:evaluation|grading|scoring) purposes\b",
    r"\bassume (?:that )?(?:the|this) (?:answer|response) (?:is|matches)",
    # A verdict.
    r"[\"'](?:score|verdict|rating|winner|grade|ranking)[\"']\s?:",
    r"\[\[ ?(?:[abc]|tie|\d{1,3}|yes|no|correct|a[<>=]{1,3}b) ?\]\]",
    r"(?:^|\n|[.!] )\W{0,4}(?:my )?(?:final |overall )?"
    r"(?:verdict|evaluation(?: result)?|assessment|judge?ment|grade|rating|rate|score)\W{0,4}: ?\W{0,4}"
    r"(?:correct|pass\b|yes\b|perfect|excellent|flawless|\d{1,3} ?/ ?\d|\d{1,3} out of"
    r"|\d{1,3}\W{0,3}(?:reason|explanation))",
    r"\b(?:verdict|winner) ?= ?\w",
)
_TURNS = (
    r"<\|(?:im_start|start_header_id|system|user|assistant|start)\|>|<｜(?:user|assistant|system)",
    r"\[/?inst\]|<</?sys>>|<start_of_turn>|</?(?:system|instructions?|verdict|judge)>",
    rf"(?:^|\n)\W{{0,3}}system ?:[^\n]{{0,100}}\b(?:{_JUDGE}|scores?|rate|{_ANSWER})\b",
    r"(?:^|\n)\W{0,3}assistant ?:[^\n]{0,60}\b(?:correct|scores?|rating|verdict)\b",
    r"\b(?:system|admin|administrator|developer) (?:override|notice|message|note|alert) ?[\])*]{0,3} ?[:\]]",
    r"[\[(](?:system|admin|administrator|developer) (?:override|notice|message|note|alert)[\])]",
    r"#{1,4} ?instructions? ?:",
    # The end of a fence.
    r"</?[a-z]{2,20}(?:-\d{1,3})? [0-9a-f]{8,64}>",
    r"</?(?:reference|baseline|candidate)(?:-\d{1,3})?>",
    rf"[-=*#\[<]{{1,8}} ?end (?:of )?(?:the )?(?:{_ANSWER}|data|text|candidate)",
)
_LATIN_LANGUAGES = (
    # German and Dutch
    r"\b(?:ignorier|vergiss|vergessen|missacht)\w{0,4}\b[^.!?\n]{0,40}(?:anweisung|instruktion|vorgabe|\bregeln)",
    r"\b(?:bewerte|benote|gib|vergib|(?:bewerten|geben|vergeben) sie)\b[^.!?\n]{0,50}"
    r"(?:punktzahl|\d punkte|höchstnote|bestnote|\bnote \d|volle punkte|\bmit (?:\d|sehr gut))",
    r"\b(?:negeer|vergeet)\b[^.!?\n]{0,40}(?:instructie|aanwijzing|opdracht)",
    r"\b(?:geef|beoordeel)\b[^.!?\n]{0,50}(?:(?:hoogste|maximale|volle) (?:score|punten|cijfer)|\bmet een \d)",
    # French, Spanish, Italian, Portuguese
    r"\b(?:ignore[zr]?|oublie[zr]?)\b[^.!?\n]{0,40}(?:instruction|consigne|directive)",
    r"\b(?:donne|attribue|mets|mettez|accorde)[zr]?\b[^.!?\n]{0,50}"
    r"(?:(?:note|score) (?:maximal|parfait|la plus)|meilleure note|\d{1,3} ?(?:points|sur|/))",
    r"\bmérite la (?:meilleure )?note",
    r"\bch(?:er|ère) (?:juge|évaluateur|évaluatrice|correcteur)",
    r"\b(?:ignor[ae]|olvid[ae]|desconsidere|esqueça|dimentica)\b[^.!?\n]{0,40}"
    r"(?:instruccion|istruzion|instruç|reglas|regole)",
    r"\b(?:otorga|dale|asigna|pon|assegna|dai|dê|atribua|dá)\b[^.!?\n]{0,50}"
    r"(?:(?:puntuación|puntaje|nota|calificación|punteggio|voto|pontuação) (?:más alt|máxim|massim|perfec|mais alt|\d)"
    r"|(?:máxima|massima) (?:puntuación|nota|pontuação)|\bun(?:a|o)? \d{1,3}\b)",
    # Polish and Turkish
    r"(?:zignoruj|ignoruj|zapomnij)[^.!?\n]{0,40}(?:instrukcj|poleceni|zasad)|"
    r"\b(?:przyznaj|daj|oceń|wystaw)\b[^.!?\n]{0,50}(?:ocen|punkt|najwyż|\bna \d)",
    r"talimat\w{0,10}[^.!?\n]{0,20}(?:yok say|unut|görmezden)|(?:tam|en yüksek|maksimum) puan\w{0,5} ver",
)
_OTHERS = (
    # Russian and Ukrainian
    r"(?:игнорир|забудь|не следуй|отмени)[^.!?\n]{0,40}(?:инструкц|указани|правил|промпт|сказано)",
    r"\b(?:(?:поставь|оцени|присвой|выстави|дай)(?:те)?|(?:прошу|надо|нужно) (?:поставить|оценить))\b"
    r"[^.!?\n]{0,50}(?:балл|оценк|\bна (?:\d|пять|десять|отлично)|максимум|высш|\b\d{1,3}\b(?! [а-я]))",
    r"(?:уважаем\w{2,3}|дорог\w{2,3}) (?:ии-)?(?:судья|оценщик|проверяющ|эксперт-оценщик)",
    r"системное (?:сообщение|уведомление) ?:",
    r"(?:считай|зачти|засчитай)(?:те)? (?:этот|мой|данный) ответ",
    r"правила оцени\w{1,10}[^.!?\n]{0,30}(?:измен|обновл|отмен)",
    r"(?:ігнору|забудь)[^.!?\n]{0,40}(?:інструкц|вказів|правил)|\b(?:постав|оціни|дай)(?:те)?\b[^.!?\n]{0,50}(?:оцінк|бал)",
    # Chinese, Japanese, Korean
    r"(?:忽略|无视|不要理会|忘记|忽視|無視)[^。!?\n]{0,20}(?:指令|指示|说明|提示|规则|要求)",
    r"(?:必须|应该|应当)[^。!?\n]{0,8}(?:满分|最高分)",
    r"(?:请|给(?:我|这|本|该|此|出))[^。!?\n]{0,15}(?:满分|最高分|高分|\d{1,3} ?分)",
    r"(?:指示|命令|ルール|プロンプト)[^。!?\n]{0,12}(?:無視|忘れ)",
    r"(?:満点|最高点|最高評価|\d{1,3} ?点)[^。!?\n]{0,8}(?:ください|付け|つけ|与え)",
    r"(?:지시|명령|지침|프롬프트)[^.!?\n]{0,12}(?:무시|잊)",
    r"(?:만점|최고점|최고 점수|\d{1,3} ?점)[^.!?\n]{0,8}(?:주세요|줘|주십시오|부여)",
    # Arabic and Hindi
    r"(?:تجاهل|انس)[^.!?\n]{0,40}(?:التعليمات|تعليمات|الأوامر)|(?:أعط|امنح)[^.!?\n]{0,40}(?:الدرجة|درجة|العلامة|علامة)",
    r"निर्देश[^।!?\n]{0,20}(?:अनदेखा|नज़रअंदाज|भूल|उपेक्षा)|(?:पूरे|अधिकतम|पूर्ण) अंक",
)
# What an answer calls itself, and words of scores: both in one sentence.
_THESE = r"esta respuesta|questa risposta|esta resposta|cette réponse|diese[rn]? antwort|dit antwoord"
ITSELF = re.compile(rf"\b(?:(?:this|my|the above) (?:{_ANSWER}|item|text|entry)|{_THESE})\b")
RATED = re.compile(
    r"\bscore[ds]?\b|\bmarks\b|\bmarked|\bratings?\b|\brated?\b|\bgrade[ds]?\b|\bpoints?\b|rubric|evaluat|\bjudge|penali[sz]"
    r"|\bwinner|\bwins\b|\d{1,3} ?/ ?\d{1,3}|out of \d|quality|\d sur \d"
    r"|\bnota\b|\bvoto\b|\bpuntu|punteggio|\bpontua|\bnote\b|punkte|punktzahl|\bcalific|\bbewert"
)
PATTERNS = tuple(map(re.compile, (*_ENGLISH, *_TURNS, *_LATIN_LANGUAGES)))
OTHER_SCRIPTS = tuple(map(re.compile, _OTHERS))  # only in texts that are not ASCII
