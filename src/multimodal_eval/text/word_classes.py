"""The possible tags of a word without its sentence, and other facts about it for the tagger.

There are three sources. Closed classes (articles, prepositions, pronouns, auxiliaries) are listed here. WordNet tells
whether another word can be a noun, verb, adjective or adverb, and with which ending. The shipped document frequencies
of COCO's captions tell which words are next to it: plurals follow "two", participles and adjectives follow "is".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache

from multimodal_eval.text.document_frequencies import coco_val2014
from multimodal_eval.text.languages import LANGUAGES, hits, known_words
from multimodal_eval.text.wordnet import CACHED_WORDS, PARTS, open_wordnet

_BY_CLASSES = {
    "DET": "a an the every each another",
    "DET INTJ": "no",
    "DET PRON": "this these those some any both either neither which what",
    "DET PRON ADV": "all",
    "DET PRON ADV NOUN": "half",
    "PRON": """he she it they we you i him them us me his her its their our your my mine hers theirs who whom whose
        itself himself herself themselves someone something somebody anyone anything anybody everyone everything
        everybody nobody nothing none""",
    "PRON SCONJ DET": "that",
    "PRON ADV": "there",
    "ADP": """of at with into onto from for between among amongst beneath underneath upon amid amidst toward towards
        against beside besides during without within via per alongside atop despite than""",
    "ADP PART": "to",
    "ADP ADV": """in on by under over behind below above around along across through off out up down past near
        throughout""",
    "ADP ADV ADJ": "about",
    "ADP ADV ADJ NOUN": "inside outside",
    "ADP SCONJ ADV": "as before after since until like",
    "CCONJ": "and or but nor &",
    "SCONJ": "while because if although though whereas unless whether",
    "AUX": "is are was were be been being am can will would could may might must should shall 're 've 'll 'm 'd",
    "AUX VERB": "has have had having do does did",
    "PART AUX": "'s",
    "PART": "not n't '",
    "NUM": "two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred",
    "NUM NOUN PRON": "one",
    "ADV": "where when how why very too also just together away here then now ever never always often perhaps almost "
    "quite rather upside ago",
    "ADJ ADV": "next",
    "ADJ": "several many few other same such various own",
    "INTJ": "yes",
}
_CLOSED = {word: tuple(sorted(classes.split())) for classes, words in _BY_CLASSES.items() for word in words.split()}

# Informative neighbours, by the code of their class.
_NEIGHBOURS: Mapping[str, str] = {
    "S": "a an another each every",
    "D": "the this his her its their",
    "Q": "two three four five several many some few various these those",
    "B": "is are was were be being",
    "T": "to",
    "P": "of in on at with by for from near over under behind into through across along around above beside against "
    "down up",
    "W": "and or",
    "N": "man woman person boy girl dog cat people men women children child guy lady bus train car bird horse dogs "
    "cats cows boys girls",
}
_LEFT, _RIGHT = "SDQBTPN", "SDBPWN"
_SHARES = (0.03, 0.15, 0.4)  # shares of neighbours from which they are noticeable, common, the rule
_RARE = 4  # images


def closed_classes() -> Mapping[str, tuple[str, ...]]:
    """The words of closed classes with their possible tags."""
    return _CLOSED


@lru_cache(maxsize=CACHED_WORDS)
def shape(word: str) -> str:
    """The forms that WordNet knows of a lower-case word as noun, verb, adjective and adverb: four characters.

    `-`: none; `0`: the base form; otherwise inflected: noun `s`; verb `s`, `g` (-ing), `d` (-ed) or `i` (irregular);
    adjective `c`.
    """
    wordnet = open_wordnet()
    signs = []
    for part, inflected in zip(PARTS, ("s", _verb_form(word), "c", "c"), strict=True):
        lemmas = wordnet.lemmas(word, part)
        signs.append("-" if not lemmas else "0" if word in lemmas else inflected)
    return "".join(signs)


def _verb_form(word: str) -> str:
    return next((sign for ending, sign in (("ing", "g"), ("ed", "d"), ("s", "s")) if word.endswith(ending)), "i")


@lru_cache(maxsize=CACHED_WORDS)
def possible_tags(word: str, capital: bool) -> tuple[str, ...]:
    """The sorted universal tags that a lower-case word can have. `capital`: the text has it with a capital letter."""
    if not any(character.isalnum() for character in word):
        return _CLOSED.get(word, ("PUNCT",))
    if word in _CLOSED:
        return _CLOSED[word]
    if word[0].isdigit():
        return ("NUM",)
    form = shape(word)
    tags = {tag for tag, sign in zip(PARTS, form, strict=True) if sign != "-"}
    if form[1] in "gdi":  # participles
        tags.add("ADJ")
    if form[1] == "g":  # gerunds
        tags.add("NOUN")
    if not tags:
        tags = _tags_by_ending(word)
    return tuple(sorted(tags | {"PROPN"} if capital else tags))


def _tags_by_ending(word: str) -> set[str]:
    """The possible tags of a word that WordNet does not know."""
    tags = {"NOUN", "ADJ"}
    if word.endswith(("s", "ing", "ed")):
        tags.add("VERB")
    if word.endswith("ly"):
        tags.add("ADV")
    return tags


@lru_cache(maxsize=CACHED_WORDS)
def neighbours(word: str) -> str:
    """How often each class of neighbours is next to a lower-case word in COCO's captions; empty for a rare word.

    A digit from 0 (hardly ever) to 3 (the rule) for each class, left neighbours first.
    """
    frequencies = coco_val2014()
    images = frequencies.count([word])
    if images < _RARE:
        return ""
    table = _neighbour_words()
    left = [sum(frequencies.count([other, word]) for other in table[sign]) for sign in _LEFT]
    right = [sum(frequencies.count([word, other]) for other in table[sign]) for sign in _RIGHT]
    return "".join(str(sum(count >= share * images for share in _SHARES)) for count in left + right)


@cache
def _neighbour_words() -> dict[str, list[str]]:
    return {sign: words.split() for sign, words in _NEIGHBOURS.items()}


# Words that carry grammar rather than content: articles, pronouns, auxiliaries, most prepositions and some adverbs.
#
# The lists are those of `languages` and, for English, the closed classes of `word_classes`. Negations and prepositions
# of place are left out: "under" instead of "on" is a mistake in a caption. Of a language without a list, every word
# counts as content.

_GRAMMAR = frozenset(("DET", "PRON", "ADP", "AUX", "CCONJ", "SCONJ", "PART", "ADV"))
_CONTENT = frozenset(("NOUN", "NUM", "ADJ"))
_MEANINGFUL = frozenset(
    # negations
    "no not n't none nothing nobody neither nor without не нет без ни nicht ohne kein keine pas ne sans no sin non "
    "senza não sem niet zonder "
    # places
    "under over behind below above beneath underneath inside outside between against beside near across through "
    "под над за при рядом unter über neben vor sous devant près sur sobre entre junto su onder naast "
    # how often, how many
    "never always often together away upside two one front".split()
)
# In scripts without spaces each letter is a word.
_LETTERS = frozenset("的了在是和与着一个有上中这那的地得はがをにのでともへや")


@cache
def function_words(language: str) -> frozenset[str]:
    """The function words of one of `languages.LANGUAGES`, in lower case."""
    bit = 1 << LANGUAGES.index(language)
    words = {word for word, (languages, _) in known_words().items() if languages & bit}
    if language == "en":
        words |= {word for word, classes in closed_classes().items() if _is_grammar(classes)}
    return frozenset(words - _MEANINGFUL) | _LETTERS


def _is_grammar(classes: Iterable[str]) -> bool:
    return not _GRAMMAR.isdisjoint(classes) and _CONTENT.isdisjoint(classes)


def function_words_among(words: Iterable[str]) -> frozenset[str]:
    """The function words of the language that the words are probably in: the one with the most function words.

    For a tie these are the words of all languages in it, or the English words if English is among them.
    """
    counts = hits(words)[: len(LANGUAGES)]
    likely = [language for language, count in zip(LANGUAGES, counts, strict=True) if count == max(counts)]
    return function_words("en") if "en" in likely else frozenset().union(*map(function_words, likely))
