"""Write bertscore.json.gz: scores of bert-score with all-MiniLM-L6-v2 for texts written for this project.

python tests/golden/record_bertscore.py FOLDER     (needs bert-score and transformers; FOLDER from `mmeval fetch`, with
a tokenizer_config.json: {"model_max_length": 512, "tokenizer_class": "BertTokenizer", "do_lower_case": true})

bert-score keeps a similarity below 0 for the longest text of a batch and replaces it by 0 for the others, which are
padded. Here each pair is scored in a batch with a longer pair, so that a score does not depend on the other pairs.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from importlib.metadata import version
from pathlib import Path

FILE = Path(__file__).with_name("bertscore.json.gz")
LAYERS = 6
BASELINES = [
    [0.30, 0.31, 0.29],
    [0.1, 0.1, 0.1],
    [0.2, 0.21, 0.2],
    [0.25, 0.25, 0.25],
    [0.3, 0.3, 0.3],
    [0.35, 0.35, 0.35],
]
BASELINES += [[0.2071, 0.2173, 0.2055]]

WHO = [
    "a man",
    "two women",
    "the old dog",
    "a child in a red coat",
    "Three cyclists",
    "nobody",
    "a black-and-white cat",
]
DOES = ["rides", "is looking at", "doesn't see", "sits next to", "has just painted", "throws", "runs away from"]
WHAT = ["a horse", "the blue car", "an umbrella", "a plate of crème brûlée", "the U.S. Capitol", "a tennis ball", "him"]
WHERE = ["on the beach", "in the rain at 10:30 p.m.", "near a train station", "behind the house", "", "at night"]
UNUSUAL = [
    ("red", ["blue"]),
    ("three", ["3", "three"]),
    ("no", ["yes", "no."]),
    ("Кошка сидит на окне.", ["Кот лежит на подоконнике.", "The cat sits in the window."]),
    ("子供が公園で遊んでいる", ["公園で子供たちが遊ぶ"]),
    ("한국어 문장입니다", ["이것은 문장입니다"]),
    ("😀😀 !!! ...", ["...", "😀"]),
    ("naïve café — crème brûlée, 5 €", ["naive cafe - creme brulee, 5 EUR"]),
    ("a [SEP] b [CLS] c", ["a b c", "a [MASK] b"]),
    ("supercalifragilisticexpialidocious", ["antidisestablishmentarianism", "super"]),
    ("\ttabs\nand lines\r\nand  spaces ", ["tabs and lines and spaces"]),
    ("x", ["y " * 40]),
    ("a train, a bus and a boat; " * 30, ["a train and a bus", "boats and trains, " * 60]),
    ("a very long description that goes on and on " * 70, ["a short one", "another very long description " * 150]),
    ("\u200b", ["a dog"]),
    ("e\u0301te\u0301", ["été", "ete"]),
    ("ﬁne ﬂowers", ["fine flowers"]),
    ("שלום עולם", ["مرحبا بالعالم"]),
    ("x=3+4; print(x)", ["print(3 + 4)"]),
    ("THE MAN IS RIDING A HORSE", ["the man is riding a horse"]),
]


def cases() -> list[tuple[str, list[str]]]:
    """200 answers with one to four references."""
    draw = random.Random(11)

    def sentence() -> str:
        text = " ".join(filter(None, (draw.choice(words) for words in (WHO, DOES, WHAT, WHERE))))
        return f"{text}{draw.choice(['', '.', ' .', '!'])}"

    ordinary: list[tuple[str, list[str]]] = []
    while len(ordinary) + len(UNUSUAL) < 200:
        joined = " and ".join(sentence() for _ in range(draw.choice([1, 1, 1, 2, 5, 20])))
        ordinary.append((joined, [sentence() for _ in range(draw.choice([1, 1, 2, 4]))]))
    return [*UNUSUAL, *ordinary]


def main() -> None:
    import tempfile

    import torch
    from bert_score import score

    torch.set_num_threads(1)
    rows, folder = cases(), sys.argv[1]
    longest = "long " * 600

    def scores(**options: object) -> list[list[float]]:
        answers = [answer for answer, _ in rows]
        references = [texts for _, texts in rows]
        # 64 pairs are one batch, and each gets a pair of two texts of 512 tokens.
        flat_answers: list[str] = []
        flat_references: list[str] = []
        groups: list[range] = []
        for answer, texts in zip(answers, references, strict=True):
            groups.append(range(len(flat_answers), len(flat_answers) + len(texts)))
            flat_answers += [answer] * len(texts)
            flat_references += texts
        idf = options.pop("idf", False)
        if idf:
            from bert_score.utils import get_idf_dict, get_tokenizer

            idf = get_idf_dict(flat_references, get_tokenizer(folder), nthreads=0)
        padded_answers: list[str] = []
        padded_references: list[str] = []
        kept: list[int] = []
        for start in range(0, len(flat_answers), 63):
            part = slice(start, start + 63)
            kept += range(len(padded_answers), len(padded_answers) + len(flat_answers[part]))
            padded_answers += [*flat_answers[part], longest]
            padded_references += [*flat_references[part], longest]
        values = torch.stack(
            score(
                padded_answers, padded_references, model_type=folder, idf=idf, batch_size=64, device="cpu", **options
            ),
            dim=1,
        )[kept]
        return [values[list(group)].max(dim=0)[0].tolist() for group in groups]

    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        file.write("LAYER,P,R,F\n" + "".join(f"{n},{p},{r},{f}\n" for n, (p, r, f) in enumerate(BASELINES)))
        file.flush()
        recorded = {
            "last": scores(num_layers=LAYERS),
            "layer 3": scores(num_layers=3),
            "layer 0": scores(num_layers=0),
            "idf": scores(num_layers=LAYERS, idf=True),
            "rescaled": scores(num_layers=LAYERS, rescale_with_baseline=True, baseline_path=file.name, lang="en"),
        }
    content = {
        "made_by": {name: version(name) for name in ("bert-score", "transformers", "torch")},
        "cases": rows,
        "baselines": BASELINES,
        "scores": {name: [[round(x, 7) for x in row] for row in table] for name, table in recorded.items()},
    }
    FILE.write_bytes(gzip.compress(json.dumps(content, ensure_ascii=False).encode(), mtime=0))


if __name__ == "__main__":
    main()
