"""Dependency parses of English captions: tokens in, parsed sentences out.

The parser is opened once per process from the files of `mmeval fetch`. Words that it mistakes are parsed again with a
common word in their place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from multimodal_eval._native import DependencyParser
from multimodal_eval.core.errors import FetchError, UnavailableError
from multimodal_eval.resources.catalogue import get_resource
from multimodal_eval.resources.store import resource_file, verify
from multimodal_eval.text.wordnet import open_wordnet

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


# Base forms of tagged words: of WordNet's base forms, the one with the most senses.

_CACHED = 1 << 16
_INFLECTED = frozenset({"NNS", "NNPS", "VBZ", "VBD", "VBG", "VBN"})


@lru_cache(maxsize=_CACHED)
def lemma_of(word: str, tag: str) -> str:
    """The base form of a lower-case noun or verb; other words are unchanged.

    "leaves" is a form of "leaf" as a noun and of "leave" as a verb. Among several base forms ("swinging" can come from
    "swing" and from the rare "swinge"), the one with the most senses is meant; of "vas" and "vase", the longer one.
    """
    part = {"NN": "NOUN", "VB": "VERB"}.get(tag[:2])
    if part is None:
        return word
    wordnet = open_wordnet()
    lemmas = list(wordnet.lemmas(word, part))
    if tag in _INFLECTED:
        lemmas = [lemma for lemma in lemmas if lemma != word] or lemmas
    if lemmas:
        return max(lemmas, key=lambda lemma: (wordnet.senses(lemma, part), len(lemma)))
    return word[:-1] if tag == "NNS" and word.endswith("s") and len(word) > 1 else word


# A parsed sentence: words with tags of the Penn Treebank and dependencies in the style of ClearNLP.

NOUN_TAGS = frozenset({"NN", "NNS", "NNP", "NNPS"})


class Word:
    """A word, its head and its dependents in the order of the sentence."""

    __slots__ = ("children", "head", "index", "is_noun", "is_verb", "label", "lemma", "tag", "text")

    def __init__(self, index: int, text: str, tag: str, label: str) -> None:
        self.index, self.text, self.tag, self.label = index, text, tag, label
        self.is_noun = tag in NOUN_TAGS
        self.is_verb = tag[:2] == "VB"
        self.lemma = lemma_of(text, tag)
        self.head = self  # of a root: itself
        self.children: list[Word] = []

    def __repr__(self) -> str:
        return f"{self.text}/{self.tag} <-{self.label}- {self.head.text}"

    def labelled(self, *labels: str) -> Iterator[Word]:
        """The dependents with one of these labels."""
        return (child for child in self.children if child.label in labels)

    def has(self, *labels: str) -> bool:
        """Whether a dependent has one of these labels."""
        return any(child.label in labels for child in self.children)

    def attach(self, head: Word, label: str | None = None) -> None:
        """Move the word to another head."""
        if self in self.head.children:
            self.head.children.remove(self)
        self.head = head
        head.children.append(self)
        head.children.sort(key=lambda child: child.index)
        if label is not None:
            self.label = label

    def with_conjuncts(self) -> list[Word]:
        """The word and all words that are coordinated with it."""
        words = [self]
        for child in self.labelled("conj"):
            words += child.with_conjuncts()
        return words


Sentence = list[Word]


def sentence(texts: Sequence[str], tags: Sequence[str], heads: Sequence[int], labels: Sequence[str]) -> Sentence:
    """The words of a parse; `heads` are indices, and a root is its own head."""
    words = [Word(index, *word) for index, word in enumerate(zip(texts, tags, labels, strict=True))]
    for word, head in zip(words, heads, strict=True):
        if head != word.index:
            word.head = words[head]
            words[head].children.append(word)
    return words


# What the parser looks up of a word: lower case, first letter, last three letters, shape.

WordFeatures = tuple[str, str, str, str, str]  # text, lower case, prefix, suffix, shape

_LONGEST_SHAPE = 100
_LONGEST_RUN = 4
_CACHED_WORDS = 1 << 16

# Strings that spaCy numbers itself; all others are numbered by a hash. The weights were trained with these numbers.
_FIRST_NUMBER = 398
_NUMBERED = (
    "acomp advcl advmod agent amod appos attr aux auxpass cc ccomp complm conj cop csubj csubjpass dep det dobj expl "
    "hmod hyph infmod intj iobj mark meta neg nmod nn npadvmod nsubj nsubjpass num number oprd obj obl parataxis "
    "partmod pcomp pobj poss possessive preconj prep prt punct quantmod relcl rcmod root xcomp acl"
)
FIXED_KEYS: dict[str, int] = {name: number for number, name in enumerate(_NUMBERED.split(), _FIRST_NUMBER)} | {"_": 456}

# Words with another normal form than their lower case, in addition to those in the parser's own table.
NORMAL_FORMS: dict[str, str] = {"€": "$", "£": "$", "¥": "$", "₹": "$", "₩": "$", "–": "-", "—": "-", "…": "..."}


@lru_cache(maxsize=_CACHED_WORDS)
def word_features(word: str) -> WordFeatures:
    """The features of a word, which must not be empty."""
    return word, NORMAL_FORMS.get(word, word.lower()), word[0], word[-3:], word_shape(word)


def word_shape(word: str) -> str:
    """Letters as X or x, digits as d, at most four of the same in a row: "U2" -> "Xd", "skating" -> "xxxx"."""
    if len(word) >= _LONGEST_SHAPE:
        return "LONG"
    shape: list[str] = []
    run, last = 0, ""
    for character in word:
        kind = _kind(character)
        run = run + 1 if kind == last else 1
        last = kind
        if run <= _LONGEST_RUN:
            shape.append(kind)
    return "".join(shape)


def _kind(character: str) -> str:
    if character.isalpha():
        return "X" if character.isupper() else "x"
    return "d" if character.isdigit() else character


# The files of a spaCy pipeline, as the native parser takes them.
#
# They are read with msgspec and NumPy alone. spaCy is not needed, and nothing of the files is executed. Only the
# layout of spaCy's small pipelines (3.x) is supported; another one is refused.

ROOT = "ROOT"
_LIFTED = "||"  # "dobj||xcomp": the word belongs to the nearest xcomp below its head


@dataclass(frozen=True, slots=True)
class OpenedParser:
    """The native parser, with the names of its tags and labels by number."""

    native: DependencyParser
    tags: tuple[str, ...]
    labels: tuple[str, ...]


class _Layer(msgspec.Struct):
    index: int
    name: str


class _Network(msgspec.Struct):
    """A network as thinc stores it: layers with their arrays and attributes."""

    nodes: list[_Layer]
    attrs: list[dict[str, bytes]]
    params: list[dict[str, Any]]

    def arrays(self, name: str, *keys: str) -> list[tuple[Floats, ...]]:
        """The named arrays of all layers with this name, in the order of the file."""
        return [
            tuple(_array(self.params[layer.index][key]) for key in keys) for layer in self.nodes if layer.name == name
        ]

    def attribute(self, name: str, key: str) -> list[int]:
        """An attribute of all layers with this name."""
        return [
            msgspec.msgpack.decode(self.attrs[layer.index][key], type=int) for layer in self.nodes if layer.name == name
        ]


def read_parser(folder: Path) -> OpenedParser:
    """The parser in a folder with the files of `mmeval fetch en-core-web-sm`."""
    try:
        return _read_parser(folder)
    except (msgspec.MsgspecError, json.JSONDecodeError, KeyError, IndexError, ValueError, TypeError) as fault:
        raise UnavailableError(f"the parser in {folder} cannot be read: {fault}") from None


def _read_parser(folder: Path) -> OpenedParser:
    vectors, tags, steps = (
        msgspec.msgpack.decode((folder / f"{name}.model").read_bytes(), type=_Network)
        for name in ("tok2vec", "tagger", "parser")
    )
    tables = [
        (rows, seed)
        for (rows,), seed in zip(vectors.arrays("hashembed", "E"), vectors.attribute("hashembed", "seed"), strict=True)
    ]
    (mix, *convolutions) = [
        (weights, bias, gain, shift)
        for (weights, bias), (gain, shift) in zip(
            vectors.arrays("maxout", "W", "b"), vectors.arrays("layernorm", "G", "b"), strict=True
        )
    ]
    ((tag_weights, tag_bias),) = tags.arrays("softmax", "W", "b")
    ((feature_weights, feature_bias, absent),) = steps.arrays("precomputable_affine", "W", "b", "pad")
    by_width = {weights.shape[1]: (weights, bias) for weights, bias in steps.arrays("linear", "W", "b")}
    names = _step_names(folder / "parser.moves")
    labels = tuple(dict.fromkeys([ROOT, *(part for _, label in names for part in label.split(_LIFTED))]))
    numbers = {label: number for number, label in enumerate(labels)}
    native = DependencyParser(
        tables=tables,
        mix=mix,
        convolutions=convolutions,
        tagger=(tag_weights, tag_bias),
        narrow=by_width[mix[0].shape[0]],
        features=(feature_weights, feature_bias, absent),
        scores=by_width[feature_weights.shape[1]],
        steps=[_step(move, label, numbers) for move, label in names],
        root_label=numbers[ROOT],
        norms=_norms(folder / "lookups.bin"),
        fixed_keys=FIXED_KEYS,
    )
    return OpenedParser(native, tuple(json.loads((folder / "tagger.cfg").read_bytes())["labels"]), labels)


def _step_names(moves: Path) -> list[tuple[int, str]]:
    """The steps in the order of the network's outputs: by move, then by descending frequency of the label."""
    stored = msgspec.msgpack.decode(moves.read_bytes(), type=dict[str, Any])
    counts: Mapping[str, Mapping[str, int]] = json.loads(stored["moves"])
    return [
        (int(move), label)
        for move in sorted(counts, key=int)
        for label, _ in sorted(counts[move].items(), key=lambda entry: (entry[1], entry[0]), reverse=True)
    ]


def _step(move: int, label: str, numbers: Mapping[str, int]) -> tuple[int, int, int]:
    plain, _, lifted = label.partition(_LIFTED)
    return move, numbers[plain], numbers[lifted] if lifted else -1


def _norms(path: Path) -> dict[int, str]:
    tables = msgspec.msgpack.decode(path.read_bytes(), type=dict[str, dict[int, str]])
    return tables.get("lexeme_norm", {})


def _array(stored: Mapping[Any, Any]) -> Floats:
    """An array as srsly stores it: shape, type and bytes."""
    import numpy as np

    entry = {key.decode() if isinstance(key, bytes) else key: value for key, value in stored.items()}
    shape: Sequence[int] = entry["shape"]
    kind = entry["type"]
    if (kind.decode() if isinstance(kind, bytes) else kind) != "<f4":
        raise ValueError(f"an array must consist of 32-bit numbers. Got {kind!r} instead.")
    return np.ascontiguousarray(np.frombuffer(entry["data"], dtype="<f4").reshape(tuple(shape)), dtype=np.float32)


# Words that the small parser mistakes, and common words that it is given in their place.
#
# The parser knows few words. It takes "hydrant" for an adjective, and "a dog leaps over a log" for a noun phrase. Three
# kinds of mistakes can be recognised without another parser: a word that WordNet lists only as a noun must be a noun, a
# plural cannot follow "a", and a base form cannot follow a singular ("a bathroom sink") or begin a caption ("train
# traveling"). A caption with such a word is parsed again, with a common word instead of it.

_SHORTEST = 3  # letters of a word that is known as a noun only
_TAKEN_FOR_OTHERS = ("JJ", "VB", "RB")
_BEFORE_A_NOUN = ("compound", "amod", "nmod")


def stand_ins(sentence: Sentence) -> dict[int, str]:
    """The indices of words that must be something else than their tag says, with common words of that kind."""
    by_index = {word.index: _stand_in(word, sentence) for word in sentence}
    return {index: other for index, other in by_index.items() if other is not None}


def _stand_in(word: Word, sentence: Sentence) -> str | None:
    if word.tag[:2] in _TAKEN_FOR_OTHERS:
        is_noun = is_only_noun(word.text) or _is_misplaced(word, sentence) or _is_noun_before_verb(word)
        return _noun_like(word.text) if is_noun else None
    before = sentence[word.index - 1] if word.index else None
    if not word.is_noun or before is None or before.label not in _BEFORE_A_NOUN or before.head is not word:
        return None
    follows_a = any(child.text in ("a", "an") for child in word.labelled("det"))
    if word.tag in ("NNS", "NNPS"):  # "a dog leaps"
        return "sits" if follows_a and before.tag in ("NN", "NNP") and _is_verb_form(word.text) else None
    return "sit" if not follows_a and before.tag == "NNS" and _is_verb(word.text) else None  # "two dogs play"


def _is_misplaced(word: Word, sentence: Sentence) -> bool:
    """Whether a base form is where a noun must be: "a bathroom sink", and "train traveling" at the start.

    It follows a singular, of which it cannot be the main verb; another one needs "to" or a verb before it.
    """
    if word.tag != "VB" or not open_wordnet().senses(word.text, "NOUN"):
        return False
    if word.index == 0:
        return [other.tag for other in sentence[1:2]] == ["VBG"]
    has_verb = any(other.is_verb or other.tag in ("TO", "MD") for other in sentence[: word.index])
    return (word.label == "ROOT" or not has_verb) and word.index > 1 and sentence[word.index - 1].tag == "NN"


def _is_noun_before_verb(word: Word) -> bool:
    """Whether an adjective that WordNet knows only as another word, a noun, modifies a verb: "a kitten laying"."""
    if word.tag != "JJ" or word.label != "amod" or word.head.is_noun:
        return False
    wordnet = open_wordnet()
    return wordnet.senses(word.text, "NOUN") > 0 and not wordnet.senses(word.text, "ADJ")


@lru_cache(maxsize=_CACHED)
def is_only_noun(word: str) -> bool:
    """Whether WordNet lists the word, or a base form of it, as a noun and as nothing else."""
    wordnet = open_wordnet()
    if len(word) < _SHORTEST or not word.isalpha() or not wordnet.forms_of(word, "NOUN"):
        return False
    return not any(wordnet.forms_of(word, part) for part in ("VERB", "ADJ", "ADV"))


def _noun_like(word: str) -> str:
    return "cars" if word.endswith("s") and not word.endswith("ss") else "car"


def _is_verb_form(word: str) -> bool:
    return bool(open_wordnet().forms_of(word, "VERB"))


def _is_verb(word: str) -> bool:
    return bool(open_wordnet().senses(word, "VERB"))


# The parser, opened once per process.

RESOURCE = "en-core-web-sm"
# Words of a caption that are parsed. The rest of a very long text is left out: time and memory grow with the length.
MOST_WORDS = 250
_opening = Lock()


class CaptionParser:
    """Parses tokenized captions."""

    def __init__(self, opened: OpenedParser) -> None:
        self.opened = opened

    def parse(self, captions: Sequence[Sequence[str]], threads: int = 1) -> list[Sentence]:
        """The parse of each caption. Those with a word that the parser mistakes are parsed again."""
        cut = [list(tokens[:MOST_WORDS]) for tokens in captions]
        sentences = self._parse_once(cut, cut, threads)
        again: list[int] = []
        changed: list[list[str]] = []
        for number, parsed in enumerate(sentences):
            if others := stand_ins(parsed):
                again.append(number)
                changed.append([others.get(index, text) for index, text in enumerate(cut[number])])
        for number, parsed in zip(again, self._parse_once(changed, [cut[i] for i in again], threads), strict=True):
            sentences[number] = parsed
        return sentences

    def _parse_once(
        self, captions: Sequence[Sequence[str]], texts: Sequence[Sequence[str]], threads: int
    ) -> list[Sentence]:
        """Parse `captions`; the words of the result have the corresponding `texts`."""
        import numpy as np

        if not captions:
            return []
        numbers: dict[str, int] = {}
        ids = [numbers.setdefault(word, len(numbers)) for tokens in captions for word in tokens]
        ends = np.cumsum([len(tokens) for tokens in captions], dtype=np.int64)
        tags, heads, labels = self.opened.native.parse(
            [word_features(word) for word in numbers], np.array(ids, np.int32), ends, threads
        )
        tag_names = [self.opened.tags[tag] for tag in tags.tolist()]
        label_names = [self.opened.labels[label] for label in labels.tolist()]
        all_heads = heads.tolist()
        starts = [0, *ends.tolist()]
        return [
            sentence(words, tag_names[start:end], all_heads[start:end], label_names[start:end])
            for words, start, end in zip(texts, starts, starts[1:], strict=False)
        ]


def open_parser() -> CaptionParser:
    """The parser with the fetched weights; an error says how to fetch them."""
    folder = resource_file(RESOURCE, "tok2vec.model").parent
    with _opening:
        return _open(str(folder))


@cache
def _open(folder: str) -> CaptionParser:
    place = Path(folder)
    try:
        verify(get_resource(RESOURCE), place)
    except FetchError as fault:
        raise UnavailableError(f"{fault} Remove the folder {place} and run: mmeval fetch {RESOURCE}") from None
    return CaptionParser(read_parser(place))
