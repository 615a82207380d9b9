"""BERTScore: how similar are the tokens of the answer and of a reference, in their contexts?

With x a token of the reference, y a token of the answer, their unit vectors in context, and weights w:

    precision = sum over y of w(y) * max over x of (x . y) / sum over y of w(y)
    recall    = sum over x of w(x) * max over y of (x . y) / sum over x of w(x)
    bertscore = 2 * precision * recall / (precision + recall)

The weights are 1, or the idf of the token. Those of [CLS] and [SEP] are 0, but another token may match them, as in the
package bert-score. A similarity below 0 counts as 0, as it does there for a text that is padded. The best of several
references counts, separately for each of the three values.

Reference:
    Zhang, Kishore, Wu, Weinberger and Artzi (2020). BERTScore: Evaluating Text Generation with BERT. ICLR.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from hashlib import sha256
from math import isfinite, log
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from multimodal_eval.core.corpus import Corpus, fitted
from multimodal_eval.core.errors import ConfigError, InputError, Problem
from multimodal_eval.core.options import Name, Option, Options
from multimodal_eval.core.registry import register
from multimodal_eval.core.sample import Sample
from multimodal_eval.core.score import Score, unscored
from multimodal_eval.evaluation.encoder_metric import TEXT_CUT, UNKNOWN, SentenceEncoderMetric
from multimodal_eval.models.encoders import DEFAULT_SENTENCE_ENCODER, open_token_encoder
from multimodal_eval.text.languages import UNFIT, fits

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from multimodal_eval.models.encoders import TextTokens, TokenEncoder

    Vectors = NDArray[np.float32]
    Weights = NDArray[np.float64]

__all__ = ["TokenFrequencies", "TokenMatch", "compute_bertscore", "greedy_match"]

LETTERS_AT_ONCE = 200_000  # of the texts whose vectors are in memory: about 80 MB with all-MiniLM
NO_WEIGHT = "every token of the references is in all references of the run, so that its idf is 0"


class TokenMatch(NamedTuple):
    """Precision, recall and their harmonic mean."""

    precision: float
    recall: float
    f1: float


def greedy_match(
    candidate: Vectors, reference: Vectors, candidate_weights: Weights, reference_weights: Weights
) -> TokenMatch:
    """Match each token with the most similar one of the other text.

    Rows are unit vectors. The weights of each text are 0 or more, and one at least is not 0.
    """
    similarities = (candidate @ reference.T).clip(0, 1)
    precision = _weighted_mean(similarities.max(axis=1), candidate_weights)
    recall = _weighted_mean(similarities.max(axis=0), reference_weights)
    total = precision + recall
    return TokenMatch(precision, recall, 2 * precision * recall / total if total else 0.0)


def _weighted_mean(values: Vectors, weights: Weights) -> float:
    return min(1.0, float(values @ weights) / float(weights.sum()))  # sums may exceed 1 in the last digit


class TokenFrequencies(msgspec.Struct, frozen=True, dict=True):
    """In how many references each token occurs: tokens in ascending order with their counts. `+` merges shards."""

    references: int = 0
    counts: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, references: Iterable[Iterable[int]]) -> TokenFrequencies:
        """Count the references, each given by its tokens. Repetitions within a reference count once."""
        sets = [set(tokens) for tokens in references]
        return cls(len(sets), tuple(sorted(Counter(token for tokens in sets for token in tokens).items())))

    def __add__(self, other: TokenFrequencies) -> TokenFrequencies:
        counts = Counter(dict(self.counts))
        counts.update(dict(other.counts))
        return TokenFrequencies(self.references + other.references, tuple(sorted(counts.items())))

    @cached_property
    def _by_token(self) -> dict[int, int]:
        return dict(self.counts)

    def idf(self, token: int) -> float:
        """log((M + 1) / (df + 1)) with M references."""
        return log((self.references + 1) / (self._by_token.get(token, 0) + 1))

    @property
    def digest(self) -> str:
        """Equal for equal frequencies."""
        return sha256(msgspec.msgpack.encode(self)).hexdigest()[:8]

    def check(self) -> None:
        """Refuse a corpus in which every weight would be 0."""
        if all(count == self.references for _, count in self.counts):
            message = (
                "bertscore with idf weights tokens by how few references they occur in, and all references of the "
                "corpus have the same tokens: every weight would be 0."
            )
            hint = "Score more samples together, or set the option `idf: false`."
            raise InputError([Problem(code="CORPUS_TOO_SMALL", message=message, hint=hint)])


def token_frequencies(samples: Iterable[Sample], *, encoder: str = DEFAULT_SENTENCE_ENCODER) -> TokenFrequencies:
    """Count in how many references each token of an encoder occurs."""
    opened = open_token_encoder(encoder)
    references = [text for sample in samples for text in _references(sample)]
    return TokenFrequencies.of(set(ids) - opened.special for ids in opened.token_ids(references))


class BertScore(SentenceEncoderMetric):
    """F1 of the greedy matching between the tokens of the answer and of a reference, by their vectors in context."""

    name = "bertscore"
    version = "1"
    needs = ("generated_answer", "references")
    options = Options(
        SentenceEncoderMetric.options,
        layer=Option(
            int | None, None, help="the layer whose vectors are compared: 0 (embeddings) to the last, the default"
        ),
        idf=Option(bool, False, help="whether tokens are weighted by how few references of the run have them"),
        rescale=Option(
            Name | None, None, help="a file with a baseline for each layer, in the format of bert-score: LAYER,P,R,F"
        ),
    )

    def settle(self) -> None:
        """Refuse a negative layer. Rescaled scores have no lower bound that holds for every baseline."""
        layer = self.options["layer"]
        if layer is not None and layer < 0:
            raise ConfigError(f"the option `layer` of {self.name} must be 0 or more. Got {layer} instead.")
        self.corpus = Corpus(token_frequencies) if self.options["idf"] else None
        self.bounds = (0, 1) if self.options["rescale"] is None else (None, 1)

    def check_models(self) -> None:
        """Check the encoder, its layer and the baselines."""
        super().check_models()
        if self.options["layer"] is not None or self.options["rescale"] is not None:
            self.baseline(self.layer(self.token_encoder()))

    def settings(self, state: Any) -> Mapping[str, object]:
        """The encoder with its revision, the layer, and digests of the frequencies and baselines."""
        layer, idf, rescale = (self.options[name] for name in ("layer", "idf", "rescale"))
        return {
            **super().settings(state),
            "layer": "last" if layer is None else layer,
            "idf": "no" if not idf else "corpus" if state is None else f"corpus@{state.digest}",
            "rescale": "no" if rescale is None else baselines_label(rescale),
        }

    def token_encoder(self) -> TokenEncoder:
        """The encoder of tokens, loaded once per process."""
        return open_token_encoder(self.options["encoder"])

    def layer(self, encoder: TokenEncoder) -> int:
        """The layer that the option names; a ConfigError if the encoder does not have it."""
        layer = self.options["layer"]
        if layer is None:
            return encoder.layers
        if layer > encoder.layers:
            has = f"has the layers 0 to {encoder.layers}" if encoder.layers else "has only layer 0"
            raise ConfigError(f"the encoder {encoder.label} {has}. Got layer {layer} for {self.name} instead.")
        return int(layer)

    def baseline(self, layer: int) -> Baseline | None:
        """The baseline of the layer; None if scores are not rescaled."""
        path = self.options["rescale"]
        return None if path is None else baseline_of(path, layer)

    def open(self, state: TokenFrequencies | None) -> _Scorer:
        """Load the encoder and the baseline."""
        return _Scorer(self, state)


def _references(sample: Sample) -> list[str]:
    return [text for text in sample.reference_texts if text.strip()]


class _Scorer:
    def __init__(self, metric: BertScore, frequencies: TokenFrequencies | None) -> None:
        self.metric, self.frequencies, self.encoder = metric, frequencies, metric.token_encoder()
        self.layer = metric.layer(self.encoder)
        self.baseline = metric.baseline(self.layer)

    def score(self, batch: Sequence[Sample]) -> list[Score]:
        """Encode the texts of many samples together, each text once, but not more than fit into memory."""
        frequencies = self.frequencies
        if frequencies is None and self.metric.corpus is not None:  # a single sample: its references are the corpus
            frequencies = fitted(self.metric, batch)
        scores: list[Score] = []
        for texts_by_sample in _chunks([sample.generated_answer or "", *_references(sample)] for sample in batch):
            distinct = list(dict.fromkeys(text for texts in texts_by_sample for text in texts))
            tokens = dict(zip(distinct, self.encoder.encode(distinct, self.layer), strict=True))
            weights = {text: self._weights(tokens[text].ids, frequencies) for text in distinct}
            scores += [self._score(texts, tokens, weights) for texts in texts_by_sample]
        return scores

    def _weights(self, ids: Sequence[int], frequencies: TokenFrequencies | None) -> Weights:
        import numpy as np

        special = self.encoder.special
        if frequencies is None:
            return np.array([float(token not in special) for token in ids])
        return np.array([0.0 if token in special else frequencies.idf(token) for token in ids])

    def _score(self, texts: list[str], tokens: Mapping[str, TextTokens], weights: Mapping[str, Weights]) -> Score:
        answer, *references = texts
        if not references:
            return unscored("missing_input", "every reference is blank")
        if not answer.strip():
            return self._rescaled(TokenMatch(0.0, 0.0, 0.0))
        usable = [text for text in references if weights[text].any()]
        if not usable:
            has_tokens = any(set(tokens[text].ids) - self.encoder.special for text in references)
            return unscored("degenerate", NO_WEIGHT if has_tokens else UNKNOWN)
        if self.encoder.skips_unknown and not len(tokens[answer].ids):
            return unscored("degenerate", UNKNOWN)
        if not weights[answer].any():
            return self._rescaled(TokenMatch(0.0, 0.0, 0.0))
        left = tokens[answer].vectors, weights[answer]
        matches = [greedy_match(left[0], tokens[text].vectors, left[1], weights[text]) for text in usable]
        best = usable[max(range(len(matches)), key=lambda number: matches[number].f1)]
        languages = self.encoder.languages
        is_unfit = not (fits(answer, languages) and fits(best, languages))
        is_cut = tokens[answer].is_cut or tokens[best].is_cut
        return self._rescaled(
            TokenMatch(*map(max, zip(*matches, strict=True))),
            details={"compared_with": best} if len(references) > 1 else None,
            warning=UNFIT if is_unfit else TEXT_CUT if is_cut else None,
        )

    def _rescaled(self, match: TokenMatch, details: dict[str, str] | None = None, warning: str | None = None) -> Score:
        precision, recall, f1 = match if self.baseline is None else self.baseline.rescaled(match)
        return Score(f1, parts={"precision": precision, "recall": recall}, details=details, warning=warning)


def _chunks(texts_by_sample: Iterable[list[str]]) -> Iterator[list[list[str]]]:
    """Consecutive samples, until their texts have too many letters."""
    chunk: list[list[str]] = []
    letters = 0
    for texts in texts_by_sample:
        chunk.append(texts)
        letters += sum(map(len, texts))
        if letters > LETTERS_AT_ONCE:
            yield chunk
            chunk, letters = [], 0
    if chunk:
        yield chunk


compute_bertscore = BertScore()
register(compute_bertscore)


MAX_BYTES = 1_000_000
_COLUMNS = ["layer", "p", "r", "f"]


class Baseline(NamedTuple):
    """The mean precision, recall and F1 of unrelated texts."""

    precision: float
    recall: float
    f1: float

    def rescaled(self, values: Iterable[float]) -> tuple[float, float, float]:
        """Precision, recall and F1, each rescaled with its baseline."""
        precision, recall, f1 = ((value - base) / (1 - base) for value, base in zip(values, self, strict=True))
        return precision, recall, f1


def baseline_of(path: str, layer: int) -> Baseline:
    """The baseline of a layer. A ConfigError says what is wrong with the file."""
    _, baselines = _opened(path)
    if layer not in baselines:
        known = ", ".join(map(str, sorted(baselines)))
        raise ConfigError(f"the baseline file {path} has no line for layer {layer}. Its layers: {known}")
    return baselines[layer]


def baselines_label(path: str) -> str:
    """The file's name with a digest of its content; the name alone if it cannot be read."""
    try:
        return f"{Path(path).name}@{_opened(path)[0]}"
    except ConfigError:
        return Path(path).name


def _opened(path: str) -> tuple[str, dict[int, Baseline]]:
    try:
        stat = Path(path).stat()
        if stat.st_size > MAX_BYTES:
            raise ConfigError(f"the baseline file {path} has more than {MAX_BYTES:,} bytes: it is another kind of file")
        return _parsed(path, stat.st_mtime_ns, stat.st_size)
    except OSError as fault:
        raise ConfigError(f"the baseline file {path} cannot be read: {fault.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the baseline file {path} cannot be read: it is not text in UTF-8") from None


@lru_cache(maxsize=8)
def _parsed(path: str, changed: int, size: int) -> tuple[str, dict[int, Baseline]]:
    content = Path(path).read_bytes()
    rows = [
        (number, line.replace("\t", ",").split(","))
        for number, line in enumerate(content.decode("utf-8-sig").splitlines(), 1)
        if line.strip()
    ]
    if not rows or [name.strip().lower() for name in rows[0][1]] != _COLUMNS:
        raise ConfigError(f"the baseline file {path} must start with the line LAYER,P,R,F, as those of bert-score do")
    baselines: dict[int, Baseline] = {}
    for number, cells in rows[1:]:
        layer, baseline = _row(path, number, cells)
        if layer in baselines:
            raise ConfigError(f"{path}:{number}: layer {layer} is there twice")
        baselines[layer] = baseline
    if not baselines:
        raise ConfigError(f"the baseline file {path} has no line after its header")
    return sha256(content).hexdigest()[:8], baselines


def _row(path: str, number: int, cells: list[str]) -> tuple[int, Baseline]:
    try:
        layer, *values = map(float, cells)
        if len(values) == 3 and layer >= 0 and layer.is_integer() and all(isfinite(x) and x < 1 for x in values):
            return int(layer), Baseline(*values)
    except ValueError:
        pass
    got = ",".join(cells)[:60]
    raise ConfigError(f"{path}:{number}: a layer and three numbers below 1 are expected. Got {got!r} instead.")
