"""Our SPICE compared with the original's output on the same captions.

    mmeval fetch spice
    python bench/verify_spice.py DATA [--golden FILE] [--write]

DATA is a .json.gz: a list of {"id", "candidate", "references", "spice"}, the last as the original writes it: {"scores":
{"All": {"f", "tp", "fp", "fn"}, …}}. The golden file (tests/golden/spice_coco.tsv) has one line per image: its id, the
original's score and tuples, and ours. Exits with 1 if one of our figures differs from the golden file, or if the
agreement with the original is below that which the name `spice` requires: mean within 0.003, correlation of 0.85, equal
numbers of tuples for 60 % of the candidates. `--write` writes the golden file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from multimodal_eval.text.parsing import open_parser
from multimodal_eval.text.scene_graphs.captions import compared_captions
from multimodal_eval.text.scene_graphs.matching import Match, Openings

GOLDEN = Path(__file__).parents[1] / "tests" / "golden" / "spice_coco.tsv"
HEAD = "id\toriginal_f\toriginal_candidate\toriginal_references\toriginal_matched\tf\tcandidate\treferences\tmatched"
LARGEST_MEAN_DIFFERENCE, LEAST_CORRELATION, LEAST_EQUAL = 0.003, 0.85, 0.6
CATEGORIES = {
    "object": "Object",
    "attribute": "Attribute",
    "relation": "Relation",
    "color": "Color",
    "count": "Cardinality",
    "size": "Size",
}
# By the last digit of the id: the rules of version 1 were written with the first, and tried on the second.
SPLITS = {"written with": (0, 1), "tried on": (2,), "others": tuple(range(3, 10)), "all": tuple(range(10))}

Image = dict[str, Any]


def scored(images: Sequence[Image], openings: Openings = "original") -> list[Match]:
    candidates = [image["candidate"] for image in images]
    references = [image["references"] for image in images]
    return list(compared_captions(open_parser(), candidates, references, openings=openings))


def original(image: Image, category: str = "All") -> tuple[float, int, int, int]:
    counts = image["spice"]["scores"][category]
    matched = counts["tp"]
    return counts["f"] or 0.0, matched + counts["fp"], matched + counts["fn"], matched


def line(image: Image, match: Match) -> str:
    ours = (match.all.f, match.all.candidate, match.all.references, match.all.matched)
    return "\t".join(map(str, (image["id"], *original(image), *ours)))


def agreement(images: Sequence[Image], matches: Sequence[Match]) -> tuple[float, float, float, float, float]:
    ours = np.array([match.all.f for match in matches])
    theirs = np.array([original(image)[0] for image in images])
    equal = np.mean(
        [match.all.candidate == original(image)[1] for image, match in zip(images, matches, strict=True)], dtype=float
    )
    pearson, spearman = np.corrcoef(ours, theirs)[0, 1], spearmanr(ours, theirs).statistic
    return float(ours.mean()), float(theirs.mean()), float(pearson), float(spearman), float(equal)


def show_agreement(name: str, images: Sequence[Image], matches: Sequence[Match]) -> bool:
    ours, theirs, pearson, spearman, equal = agreement(images, matches)
    is_close = abs(ours - theirs) <= LARGEST_MEAN_DIFFERENCE and pearson >= LEAST_CORRELATION and equal >= LEAST_EQUAL
    print(
        f"  {name:<14} {len(images):>5} images  mean {ours:.4f} (original {theirs:.4f})  Pearson {pearson:.3f}  "
        f"Spearman {spearman:.3f}  equal number of tuples {equal:.1%}{'' if is_close else '   BELOW'}"
    )
    return is_close


def show_categories(images: Sequence[Image], matches: Sequence[Match]) -> None:
    print("  tuples per image    candidate (original)   references (original)    matched (original)   equal candidates")
    for category, name in CATEGORIES.items():
        ours = np.array(
            [
                (counts.candidate, counts.references, counts.matched)
                for counts in (match.by_category[category] for match in matches)
            ]
        )
        theirs = np.array([original(image, name)[1:] for image in images])
        cells = [
            f"{mean:7.2f} ({other:.2f})" for mean, other in zip(ours.mean(axis=0), theirs.mean(axis=0), strict=True)
        ]
        equal = float((ours[:, 0] == theirs[:, 0]).mean())
        print(f"  {category:<14} {cells[0]:>22} {cells[1]:>22} {cells[2]:>22} {equal:16.1%}")


def golden_agrees(path: Path, lines: Sequence[str]) -> bool:
    recorded = path.read_text("utf-8").splitlines()[1:]
    by_id = {entry.partition("\t")[0]: entry for entry in recorded}
    known = [entry for entry in lines if entry.partition("\t")[0] in by_id]
    wrong = [entry for entry in known if by_id[entry.partition("\t")[0]] != entry]
    print(f"golden file: {len(known)} of {len(lines)} images are in it, {len(wrong)} differ")
    for entry in wrong[:5]:
        print(f"  now    {entry}\n  golden {by_id[entry.partition(chr(9))[0]]}")
    return not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--golden", type=Path, default=GOLDEN)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    images: list[Image] = json.loads(gzip.decompress(Path(arguments.data).read_bytes()))
    matches = scored(images)
    print("openings as the original reads them")
    verdicts = []
    for name, digits in SPLITS.items():
        chosen = [number for number, image in enumerate(images) if int(image["id"]) % 10 in digits]
        if chosen:
            verdicts.append(show_agreement(name, [images[i] for i in chosen], [matches[i] for i in chosen]))
    show_categories(images, matches)
    print("plain openings, for comparison")
    show_agreement("all", images, scored(images, "plain"))
    lines = [line(image, match) for image, match in zip(images, matches, strict=True)]
    if arguments.write:
        arguments.golden.write_text("\n".join([HEAD, *lines]) + "\n", "utf-8")
    is_golden = golden_agrees(arguments.golden, lines)
    return 0 if verdicts[-1] and is_golden else 1


if __name__ == "__main__":
    sys.exit(main())
