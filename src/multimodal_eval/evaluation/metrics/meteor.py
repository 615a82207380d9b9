"""METEOR: which words of the answer match a reference, exactly, by stem or as synonyms? Three variants.

With m matched words, P = m / words of the answer and R = m / words of the reference:

    fmean   10 P R / (R + 9 P)                                             of the dialogue contest
    2005    10 P R / (R + 9 P) * (1 - 0.5 (chunks / m)^3)                  Banerjee and Lavie
    1.5     P R / (alpha P + (1 - alpha) R) * (1 - gamma (chunks / m)^beta)  Denkowski and Lavie's program

A chunk is a sequence of matches that are adjacent on both sides. The best reference counts. `fmean` and `2005` maximise
the matches, stage by stage, and choose the alignment with the fewest crossings. `1.5` also matches paraphrases, weights
matches and function words, and reproduces the program's beam search. Its corpus score comes from summed statistics; for
the others it is the mean.

References:
    Banerjee and Lavie (2005). METEOR: An Automatic Metric for MT Evaluation with Improved Correlation with Human
    Judgments. ACL workshop. Denkowski and Lavie (2014). Meteor Universal: Language Specific Translation Evaluation for
    Any Target Language. WMT.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from multimodal_eval._native import Meteor15, MeteorDataBuilder, StagedMeteor, meteor_from_stats, stem
from multimodal_eval.core.errors import ConfigError, FetchError, InputError, Problem, UnavailableError
from multimodal_eval.core.metric import Metric, Scorer, configured, require_references
from multimodal_eval.core.options import Name, Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import MEAN, Estimate, Rows, Score, Scores
from multimodal_eval.resources.catalogue import Resource, get_resource, russian_resources
from multimodal_eval.resources.store import resource_file, sha256_of, verify
from multimodal_eval.text.captions import texts_of
from multimodal_eval.text.languages import language_of_texts
from multimodal_eval.text.synonyms import SynonymSource, get_synonyms
from multimodal_eval.text.tokenizers import check_tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

__all__ = ["LANGUAGES", "TABLE", "compute_meteor", "meteor", "open_program", "parameters", "prepare", "resource_name"]


# METEOR 1.5's word lists and paraphrases in one memory-mapped file, built once from the files of `mmeval fetch`.
#
# The original program reads 272 MB of text at every start, which takes seconds and over a gigabyte of memory. The
# mapped file opens in milliseconds, and only the pages in use are read.

TABLE = "meteor-1.table"  # the number is the version of the layout: another version gets another file
LANGUAGES = ("en", "ru")
# Denkowski and Lavie's parameters for ranking: for English, and for languages without tuned ones.
_PARAMETERS = {
    "en": (0.85, 0.20, 0.60, 0.75, 1.0, 0.6, 0.8, 0.6),
    "ru": (0.75, 1.40, 0.70, 0.50, 1.0, 0.5, 0.0, 0.5),
}
_CHUNK = 1 << 20
_opening = Lock()  # only one thread builds a missing table


def resource_name(language: str) -> str:
    """The name of the resource with a language's data."""
    if language not in LANGUAGES:
        raise ConfigError(f"the option `language` must be one of {', '.join(LANGUAGES)}. Got {language!r} instead.")
    return f"meteor-1.5-{language}"


def parameters(language: str) -> Vector:
    """alpha, beta, gamma, delta, then the weights of the modules exact, stem, synonym, paraphrase."""
    import numpy as np

    return np.array(_PARAMETERS[language])


def open_program(language: str, stemmer: str) -> Meteor15:
    """METEOR 1.5 with its data, opened once per process. The table's checksum is verified once per file."""
    folder = resource_file(resource_name(language), TABLE).parent
    with _opening:
        return _open(str(folder), language, stemmer)


@cache
def _open(folder: str, language: str, stemmer: str) -> Meteor15:
    import numpy as np

    resource, place = get_resource(resource_name(language)), Path(folder)
    (table,) = resource.derived
    if not (place / table.name).is_file() or sha256_of(place / table.name) != [table.sha256]:
        _rebuild(resource, place)  # from the fetched files
    mapped = np.memmap(place / table.name, dtype=np.uint8, mode="r")
    return Meteor15(mapped, stemmer, language != "en", parameters(language))


def _rebuild(resource: Resource, folder: Path) -> None:
    try:
        (folder / TABLE).unlink(missing_ok=True)
        verify(resource, folder)
        prepare(folder)
        verify(resource, folder)
    except (FetchError, OSError, EOFError, RuntimeError, zlib.error) as failure:
        reason = str(failure).removesuffix(".")
        raise UnavailableError(
            f"METEOR's data in {folder} cannot be used: {reason}. Remove the folder and fetch the data again with: "
            f"mmeval fetch {resource.name}"
        ) from None


def prepare(folder: Path, progress: Callable[[str, int, int], None] = lambda name, done, total: None) -> None:
    """Build the table from the files in a folder. An interrupted attempt leaves no table."""
    builder = MeteorDataBuilder()
    adders = {
        "words": builder.add_function_words,
        "synsets": builder.add_synsets,
        "exceptions": builder.add_exceptions,
        "prefixes": builder.add_prefixes,
    }
    for suffix, add in adders.items():
        for file in folder.glob(f"*.{suffix}"):
            add(file.read_bytes())
    for packed in folder.glob("paraphrase-*.gz"):
        size = packed.stat().st_size
        with packed.open("rb") as stream, gzip.GzipFile(fileobj=stream) as lines:
            while chunk := lines.read(_CHUNK):
                builder.add_paraphrases(chunk)
                progress("sorting paraphrases", stream.tell(), size)
    content = builder.finish()
    scratch = folder / f".{TABLE}-{uuid4().hex}"
    try:
        with scratch.open("wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
        scratch.replace(folder / TABLE)
    finally:
        scratch.unlink(missing_ok=True)


VARIANTS = ("fmean", "2005", "1.5")
AUTO = "auto"  # the language of each sample's references
STEMMERS = {
    "fmean": {"en": "english", "ru": "russian"},
    "2005": {"en": "porter", "ru": "russian"},
    "1.5": {"en": "english", "ru": "russian-2014"},
}
DEFAULT_TOKENIZER = {"fmean": "unicode", "2005": "unicode", "1.5": "ptb"}
# Columns of 1.5's statistics; all except the chunks are pairs: first the answer, then the reference.
_WORDS, _FUNCTION_WORDS, _MATCHED, _CHUNKS, _ALL_MATCHED = 0, 2, 4, 20, 21
_MODULES = 4
TOO_LONG = "the texts are too long for METEOR 1.5: more than 25,000,000 pairs of words, or 1,000,000 that match"
UNPROVEN = "alignment_not_proven"


def meteor(
    candidate: str,
    references: Sequence[str],
    *,
    variant: str = "1.5",
    language: str = "en",
    synonyms: str | Mapping[str, str] = "default",
    tokenizer: str = "default",
) -> float:
    """METEOR of one text against its references.

    `variant` is fmean, 2005 or 1.5. `language` is en or ru; fmean and 2005 also take `auto`, which detects it from the
    letters of the references. `synonyms` (fmean and 2005) is the name of a source, or one name per language.
    `tokenizer` is the name of a tokenizer; 1.5 also takes `none`, which leaves the text unchanged. 1.5 needs its data:
    `mmeval fetch meteor-1.5-en`.
    """
    require_references("meteor", references)
    metric = configured(
        compute_meteor, {"variant": variant, "language": language, "synonyms": synonyms, "tokenizer": tokenizer}
    )
    return float(metric.rows_of([candidate], [list(references)]).values[0])


class TextsScorer(Protocol):
    """Scores answers against their references."""

    def __call__(self, candidates: list[str], references: list[list[str]]) -> Sequence[Score]:
        """One score per answer."""

    def rows(self, candidates: list[str], references: list[list[str]], threads: int) -> Rows:
        """The same as arrays; NaN if the texts are too long."""


class StemSynonyms:
    """A source that also looks up the stem of a word, as NLTK does, and therefore finds more synonyms."""

    def __init__(self, source: SynonymSource, stemmer: str) -> None:
        self.source, self.stemmer, self.label = source, stemmer, f"{source.label}+stems"

    def synsets(self, words: Sequence[str]) -> list[Sequence[int]]:
        """The synsets of each word and of its stem."""
        by_word, by_stem = self.source.synsets(words), self.source.synsets(stem(list(words), self.stemmer))
        return [sorted({*word, *stem_}) if stem_ else word for word, stem_ in zip(by_word, by_stem, strict=True)]


class StagedScorer:
    """Scores with fmean or 2005."""

    def __init__(self, tokenizer: str, stemmer: str, synonyms: SynonymSource, *, with_penalty: bool) -> None:
        self.tokenizer, self.stemmer, self.synonyms, self.with_penalty = tokenizer, stemmer, synonyms, with_penalty

    def aligned(self, candidates: list[str], references: list[list[str]]) -> StagedMeteor:
        """The texts as words with stems and synsets, ready to be aligned."""
        texts = StagedMeteor(candidates, references, self.tokenizer, self.stemmer)
        texts.set_synsets(self.synonyms.synsets(texts.words()))
        return texts

    def rows(self, candidates: list[str], references: list[list[str]], threads: int) -> Rows:
        """One value per answer."""
        return Rows(self.aligned(candidates, references).score(self.with_penalty, threads)[:, 0])

    def __call__(self, candidates: list[str], references: list[list[str]]) -> Scores:
        """One score per answer, with a warning if its alignment is not proven to be the best."""
        rows = self.aligned(candidates, references).score(self.with_penalty)
        scores = Scores.of_values(rows[:, 0].copy())
        for row in (rows[:, -1] == 0).nonzero()[0].tolist():
            scores.details[row], scores.warnings[row] = {"alignment": "beam"}, UNPROVEN
        return scores


class ByLanguage:
    """Scores each answer with the scorer for the language of its references."""

    def __init__(self, scorers: Mapping[str, TextsScorer]) -> None:
        self.scorers = scorers

    def _rows_by_scorer(self, references: list[list[str]]) -> Iterator[tuple[TextsScorer, list[int]]]:
        languages = [language_of_texts(texts) for texts in references]
        for language, scorer in self.scorers.items():
            rows = [row for row, detected in enumerate(languages) if detected == language]
            if rows:
                yield scorer, rows

    def rows(self, candidates: list[str], references: list[list[str]], threads: int) -> Rows:
        """One value per answer."""
        import numpy as np

        values = np.empty(len(candidates))
        for scorer, rows in self._rows_by_scorer(references):
            scored = scorer.rows([candidates[row] for row in rows], [references[row] for row in rows], threads)
            values[rows] = scored.values
        return Rows(values)

    def __call__(self, candidates: list[str], references: list[list[str]]) -> list[Score]:
        """One score per answer."""
        scores: dict[int, Score] = {}
        for scorer, rows in self._rows_by_scorer(references):
            batch = scorer([candidates[row] for row in rows], [references[row] for row in rows])
            scores.update(zip(rows, batch, strict=True))
        return [scores[row] for row in range(len(candidates))]


class ProgramScorer:
    """Scores with 1.5."""

    def __init__(self, tokenizer: str, language: str, stemmer: str) -> None:
        self.tokenizer = "" if tokenizer == "none" else tokenizer
        self.program = open_program(language, stemmer)

    def rows(
        self, candidates: list[str], references: list[list[str]], threads: int, *, are_lines: bool = False
    ) -> Rows:
        """One value per answer, with the statistics for the corpus score."""
        return Rows(*self.program.score(candidates, references, self.tokenizer, threads, are_lines))

    def __call__(self, candidates: list[str], references: list[list[str]]) -> Scores:
        """The same as scores."""
        values, stats = self.program.score(candidates, references, self.tokenizer)
        scores = Scores.of_values(values, stats=stats)
        for row in (values != values).nonzero()[0].tolist():
            scores.refuse(row, "error", TOO_LONG)
        return scores


def _of_sums(language: str, rows: Rows) -> Estimate:
    """The score of 1.5 for a corpus, from its summed statistics."""
    from multimodal_eval.stats.estimates import function_of_sums

    return function_of_sums(rows, partial(corpus_score, language), partial(corpus_gradient, language))


def corpus_score(language: str, sums: Vector) -> float:
    """METEOR 1.5 from summed statistics."""
    return meteor_from_stats(sums, parameters(language))


def corpus_gradient(language: str, sums: Vector) -> Vector:
    """d score / d statistics, for F = 1 / ((1 - alpha)/P + alpha/R) and score = F (1 - gamma (chunks/m)^beta)."""
    import numpy as np

    gradient = np.zeros(len(sums))
    matched = (sums[_ALL_MATCHED] + sums[_ALL_MATCHED + 1]) / 2
    if matched == 0:
        return gradient
    alpha, beta, gamma, delta, *weights = parameters(language).tolist()
    shares, share_gradients = [], []
    for side in (0, 1):
        lengths, hits = np.zeros(len(sums)), np.zeros(len(sums))
        lengths[_WORDS + side], lengths[_FUNCTION_WORDS + side] = delta, 1 - 2 * delta
        for module in range(_MODULES):
            hits[_MATCHED + 4 * module + side] = weights[module] * delta
            hits[_MATCHED + 4 * module + 2 + side] = weights[module] * (1 - delta)
        shares.append(float(hits @ sums) / float(lengths @ sums))
        share_gradients.append((hits - shares[side] * lengths) / float(lengths @ sums))
    precision, recall = shares
    mean = 1 / ((1 - alpha) / precision + alpha / recall)
    penalty = gamma * (sums[_CHUNKS] / matched) ** beta
    gradient += (1 - penalty) * mean**2 * (1 - alpha) / precision**2 * share_gradients[0]
    gradient += (1 - penalty) * mean**2 * alpha / recall**2 * share_gradients[1]
    if sums[_CHUNKS] > 0:
        gradient[_CHUNKS] -= mean * penalty * beta / sums[_CHUNKS]
    gradient[_ALL_MATCHED : _ALL_MATCHED + 2] += mean * penalty * beta / matched / 2
    return gradient


class Meteor(Metric):
    """Words of the answer that match a reference exactly, by stem, as synonyms or as paraphrases. Variants 1.5, 2005
    and fmean; English, Russian, or each sample's language.
    """

    name = "meteor"
    version = "1"
    needs = ("generated_answer", "references")
    bounds = (0, 1)
    aggregate = staticmethod(partial(_of_sums, "en"))
    options = Options(
        variant=Option(str, "1.5", choices=VARIANTS, convert=str, help="the formula, and how words are aligned"),
        language=Option(
            str,
            "en",
            choices=(*LANGUAGES, AUTO),
            convert=str,
            help="of answers and references; auto (fmean and 2005) detects it from each sample's references",
        ),
        synonyms=Option(
            Name | Mapping[str, Name],
            "default",
            words="a name, or one name per language (ru: ruwordnet:FILE)",
            help="fmean and 2005: default, wordnet, wiktionary, ruwordnet:FILE, none, or a plug-in's source",
        ),
        tokenizer=Option(
            Name,
            "default",
            help="by default ptb for 1.5 and unicode for the others; for 1.5, none leaves the text unchanged",
        ),
    )

    def settle(self) -> None:
        """Refuse unknown tokenizers and languages, and options that 1.5 does not have."""
        synonyms, tokenizer = self.options["synonyms"], self.options["tokenizer"]
        for language in synonyms if isinstance(synonyms, Mapping) else ():
            if language not in LANGUAGES:
                languages = ", ".join(LANGUAGES)
                raise ConfigError(f"the option `synonyms` must name sources for {languages}. Got {language!r}.")
        if self.variant == "1.5" and self.language == AUTO:
            raise ConfigError("METEOR 1.5 scores one language: the option `language` must be en or ru. Got 'auto'.")
        if tokenizer != "default" and not (self.variant == "1.5" and tokenizer == "none"):
            check_tokenizer(tokenizer)
        if self.variant == "1.5" and synonyms != "default":
            raise ConfigError(f"METEOR 1.5 has its own synonyms. Got the option `synonyms`: {synonyms!r}.")
        self.aggregate = partial(_of_sums, self.language) if self.variant == "1.5" else MEAN

    @property
    def variant(self) -> str:
        """fmean, 2005 or 1.5."""
        return str(self.options["variant"])

    @property
    def language(self) -> str:
        """The language of answers and references; auto if it is detected for each sample."""
        return str(self.options["language"])

    def by_language(self) -> list[Meteor]:
        """The metrics for the single languages that `auto` chooses from."""
        return [configured(self, {"language": language}) for language in LANGUAGES]

    @property
    def tokenizer(self) -> str:
        """The tokenizer that the option names, or the default of the variant."""
        chosen = str(self.options["tokenizer"])
        return DEFAULT_TOKENIZER[self.variant] if chosen == "default" else chosen

    @property
    def stemmer(self) -> str:
        """The stemmer of the variant for the language."""
        if self.language == AUTO:
            return "+".join(metric.stemmer for metric in self.by_language())
        return STEMMERS[self.variant][self.language]

    @property
    def synonyms(self) -> SynonymSource:
        """The source of synonyms for the language (fmean and 2005)."""
        source = get_synonyms(self._source_name(self.language), self.language)
        by_stem = self.variant == "2005" and self.language == "en" and source.label != "none"
        return StemSynonyms(source, self.stemmer) if by_stem else source

    def _source_name(self, language: str) -> str:
        chosen = self.options["synonyms"]
        return chosen if isinstance(chosen, str) else str(chosen.get(language, "default"))

    def settings(self, state: Any) -> Mapping[str, object]:
        """The variant, language, tokenizer and stemmer, and the source of synonyms or the data of 1.5."""
        settings = {
            "variant": self.variant,
            "language": self.language,
            "tokenizer": self.tokenizer,
            "stemmer": self.stemmer,
        }
        if self.variant == "1.5":
            settings["data"] = get_resource(resource_name(self.language)).fingerprint
        else:
            sources = self.by_language() if self.language == AUTO else [self]
            settings["synonyms"] = "+".join(metric.synonyms.label for metric in sources)
        return settings

    def unavailable(self) -> str | None:
        """Why the data of 1.5 or the source of synonyms is missing, or None."""
        try:
            self.texts_scorer()
        except UnavailableError as absent:
            return str(absent)
        return None

    def resources(self) -> tuple[str, ...]:
        """The data of 1.5, or that of the Russian synonyms."""
        if self.variant == "1.5":
            return (resource_name(self.language),)
        return russian_resources(self._source_name("ru")) if self.language in ("ru", AUTO) else ()

    def texts_scorer(self) -> TextsScorer:
        """The variant, ready to score texts."""
        if self.variant == "1.5":
            return ProgramScorer(self.tokenizer, self.language, self.stemmer)
        if self.language == AUTO:
            return ByLanguage({metric.language: metric.texts_scorer() for metric in self.by_language()})
        return StagedScorer(self.tokenizer, self.stemmer, self.synonyms, with_penalty=self.variant == "2005")

    def rows_of(
        self, candidates: list[str], references: list[list[str]], threads: int = 1, *, are_lines: bool = False
    ) -> Rows:
        """The values of many texts, with the statistics for the corpus score of 1.5.

        If the texts `are_lines` of a file, 1.5 tokenizes them as the Java program does, which looks at the next line.
        """
        import numpy as np

        for number, texts in enumerate(references, 1):
            if not texts:
                raise InputError([Problem(code="NO_REFERENCE", message="there are no references", line=number)])
        scorer = self.texts_scorer()
        if are_lines and isinstance(scorer, ProgramScorer):
            rows = scorer.rows(candidates, references, threads, are_lines=True)
        else:
            rows = scorer.rows(candidates, references, threads)
        too_long = np.flatnonzero(np.isnan(rows.values)).tolist()
        if too_long:
            raise InputError([Problem(code="TOO_LONG", message=TOO_LONG, line=number + 1) for number in too_long])
        return rows

    def open(self, state: Any) -> Scorer:
        """Open the variant; data and synonyms are shared."""
        return _SampleScorer(self.texts_scorer())


class _SampleScorer:
    def __init__(self, texts_scorer: TextsScorer) -> None:
        self.texts_scorer = texts_scorer

    def score(self, batch: Sequence[Sample]) -> Sequence[Score]:
        if isinstance(self.texts_scorer, ByLanguage):  # which looks at the texts itself
            batch = list(batch)
        return self.texts_scorer(*texts_of(batch))


compute_meteor = Meteor()
register(compute_meteor)
