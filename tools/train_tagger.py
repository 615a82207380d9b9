"""Write text/pos_english.tsv.gz, the weights of the part-of-speech tagger, from tagged captions.

    python train_tagger.py [CAPTIONS [OUTPUT]]

CAPTIONS is by default tools/tagged_captions.tsv: captions written for this project and tagged by hand, one
`word<TAB>TAG` per line, with a blank line between captions. Trains an averaged perceptron with a margin that tags
greedily from left to right. The same captions give the same bytes.
"""

from __future__ import annotations

import gzip
import random
import sys
from collections import defaultdict
from pathlib import Path

from multimodal_eval.text.pos import Sentence, Weights, scores

HERE = Path(__file__).parent
CAPTIONS = HERE / "tagged_captions.tsv"
OUTPUT = HERE.parent / "src" / "multimodal_eval" / "text" / "pos_english.tsv.gz"
EPOCHS = 6
MARGIN = 3
SCALE = 100  # weights are stored in hundredths

Caption = list[tuple[str, str]]


def read_captions(path: Path) -> list[Caption]:
    """Captions as pairs of word and tag."""
    return [
        [(word, name) for word, _, name in (line.partition("\t") for line in block.splitlines())]
        for block in path.read_text("utf-8").strip().split("\n\n")
    ]


class Averaged:
    """Weights with their sums over all steps."""

    def __init__(self) -> None:
        self.now: dict[str, dict[str, int]] = defaultdict(dict)
        self.sums: dict[tuple[str, str], int] = defaultdict(int)
        self.since: dict[tuple[str, str], int] = defaultdict(int)
        self.step = 0

    def add(self, feature: str, name: str, change: int) -> None:
        """Change a weight from the current step on."""
        key, old = (feature, name), self.now[feature].get(name, 0)
        self.sums[key] += (self.step - self.since[key]) * old
        self.since[key] = self.step
        self.now[feature][name] = old + change

    def means(self) -> Weights:
        """The mean of each weight over all steps, in hundredths. Means that round to 0 are left out."""
        rounded: dict[str, dict[str, int]] = {}
        for feature, by_name in self.now.items():
            for name, last in by_name.items():
                total = self.sums[feature, name] + (self.step - self.since[feature, name]) * last
                mean = (2 * SCALE * total + self.step) // (2 * self.step)  # rounded to the nearest integer
                if mean:
                    rounded.setdefault(feature, {})[name] = mean
        return rounded


def train(captions: list[Caption], epochs: int = EPOCHS) -> Weights:
    """Train weights that separate the correct tag from the next best one by a margin, if possible."""
    weights, order, rng = Averaged(), list(captions), random.Random(0)
    for _ in range(epochs):
        rng.shuffle(order)
        for caption in order:
            _learn(caption, weights)
    return weights.means()


def _learn(caption: Caption, weights: Averaged) -> None:
    sentence = Sentence([word for word, _ in caption])
    for index, (word, correct) in enumerate(caption):
        weights.step += 1
        candidates = sentence.candidates(index)
        if correct not in candidates:
            raise SystemExit(
                f"{' '.join(word for word, _ in caption)}: {word!r} cannot be {correct}, only {candidates}"
            )
        if len(candidates) == 1:
            sentence.add(correct)
            continue
        features = sentence.features(index)
        sums = scores(features, candidates, weights.now)
        rival = max((name for name in candidates if name != correct), key=sums.__getitem__)
        lead = sums[correct] - sums[rival]
        if lead < MARGIN:
            for feature in features:
                weights.add(feature, correct, 1)
                weights.add(feature, rival, -1)
        sentence.add(max(candidates, key=sums.__getitem__))


def packed(weights: Weights) -> bytes:
    """The content of the weights file."""
    lines = [
        "\t".join(
            [feature, *(cell for name in sorted(weights[feature]) for cell in (name, str(weights[feature][name])))]
        )
        for feature in sorted(weights)
    ]
    return gzip.compress(("\n".join(lines) + "\n").encode("utf-8"), 9, mtime=0)


def main() -> None:
    captions = Path(sys.argv[1]) if len(sys.argv) > 1 else CAPTIONS
    output = Path(sys.argv[2]) if len(sys.argv) > 2 else OUTPUT
    data = packed(train(read_captions(captions)))
    output.write_bytes(data)
    print(f"{output}: {len(data):,} bytes")


if __name__ == "__main__":
    main()
