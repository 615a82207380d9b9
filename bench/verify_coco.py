"""Our caption metrics compared with pycocoevalcap on the same captions: tokens, per-image scores, corpus scores.

    python bench/verify_coco.py DATA GOLDEN        (both .json.gz)

DATA contains {"references": {id: [captions]}, "candidates": {id: caption}}. GOLDEN contains the tokens of the Java
tokenizer and the scores of the classes Bleu, Meteor, Rouge and Cider. METEOR needs `mmeval fetch meteor-1.5-en`. Exits
with 1 if a token differs, or if a score has a relative difference above 1e-12.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from multimodal_eval.interop.coco import BLEU_NAMES, CaptionScores, caption_scores
from multimodal_eval.text.tokenizers import tokenize

TOLERANCE = 1e-12
SHOWN = 5
PER_IMAGE = {
    "Bleu_4": "Bleu",
    "METEOR": "Meteor",
    "ROUGE_L": "Rouge",
    "CIDEr": "Cider",
}  # our name -> golden name


def read(path: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(gzip.decompress(Path(path).read_bytes()))
    return content


def captions_and_tokens(data: dict[str, Any], golden: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The position of a caption, the caption, and its recorded tokens."""
    for image in golden["ids"]:
        yield f"candidate of {image}", data["candidates"][image], golden["candidate_tokens"][image]
        references = zip(data["references"][image], golden["reference_tokens"][image], strict=True)
        for number, (caption, recorded) in enumerate(references, 1):
            yield f"reference {number} of {image}", caption, recorded


def tokens_agree(data: dict[str, Any], golden: dict[str, Any]) -> bool:
    positions, captions, recorded = zip(*captions_and_tokens(data, golden), strict=True)
    ours = [" ".join(tokens) for tokens in tokenize(captions, "ptb")]
    wrong = [number for number, tokens in enumerate(ours) if tokens != recorded[number]]
    print(f"tokens: {len(captions):,} captions, {len(wrong)} tokenized differently")
    for number in wrong[:SHOWN]:
        print(f"  {positions[number]}: {captions[number]!r}\n    ours {ours[number]!r}\n    java {recorded[number]!r}")
    return not wrong


def relative_difference(ours: float, theirs: float) -> float:
    return 0.0 if ours == theirs else abs(ours - theirs) / max(abs(ours), abs(theirs))


def values_agree(name: str, ours: Sequence[float], theirs: Sequence[float]) -> bool:
    largest = max(relative_difference(our, their) for our, their in zip(ours, theirs, strict=True))
    equal = sum(our == their for our, their in zip(ours, theirs, strict=True))
    verdict = "" if largest <= TOLERANCE else "   DIFFERS"
    print(f"  {name:<18} {len(ours):>6,} {largest:14.1e} {equal / len(ours):12.1%}{verdict}")
    return largest <= TOLERANCE


def scores_agree(scores: CaptionScores, golden: dict[str, Any]) -> bool:
    print(f"  {'':<18} {'values':>6} {'max rel. diff':>14} {'bit-equal':>12}")
    verdicts = [
        values_agree(f"{name} per image", scores.per_image[name].tolist(), golden[recorded])
        for name, recorded in PER_IMAGE.items()
    ]
    corpus = dict(zip(BLEU_NAMES, golden["corpus"]["Bleu_1..4"], strict=True))
    corpus |= {name: golden["corpus"][name] for name in ("METEOR", "ROUGE_L", "CIDEr")}
    verdicts += [values_agree(f"{name} corpus", [scores.corpus[name]], [value]) for name, value in corpus.items()]
    return all(verdicts)


def main(data_path: str, golden_path: str) -> int:
    data, golden = read(data_path), read(golden_path)
    candidates = [data["candidates"][image] for image in golden["ids"]]
    references = [data["references"][image] for image in golden["ids"]]
    verdicts = [tokens_agree(data, golden)]
    for threads in (1, 2):
        print(f"\nscores with {threads} thread{'s' if threads > 1 else ''}")
        verdicts.append(scores_agree(caption_scores(candidates, references, threads=threads, meteor=True), golden))
    print("\nall as recorded" if all(verdicts) else "\nNOT as recorded")
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
