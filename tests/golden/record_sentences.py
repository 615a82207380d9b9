"""Write sentences.json.gz: vectors of texts from sentence-transformers with all-MiniLM-L6-v2.

python tests/golden/record_sentences.py FOLDER     (needs sentence-transformers; FOLDER from `mmeval fetch`)
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
from importlib.metadata import version
from pathlib import Path

FILE = Path(__file__).with_name("sentences.json.gz")

TEXTS = [
    "A dog runs along the beach.",
    "A brown dog is running on the shore.",
    "Two children play chess in a park while an old man watches them.",
    "red",
    "three",
    "no",
    "The man isn't riding a horse.",
    "the man is riding a horse",
    "What colour is the car on the left?",
    "A black-and-white photo of the U.S. Capitol at 10:30 a.m.",
    "naïve café — crème brûlée, 5 €",
    "Кошка сидит на окне.",
    "子供が公園で遊んでいる",
    "😀😀 !!! ...",
    "x",
    "",
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "a train, a bus and a boat; " * 20,
    "a very long description that goes on and on " * 60,  # beyond 256 tokens
    "\ttabs\nand lines\r\nand  spaces ",
]


def main() -> None:
    from sentence_transformers import SentenceTransformer, models

    encoder = models.Transformer(sys.argv[1], max_seq_length=256)
    pooling = models.Pooling(encoder.get_word_embedding_dimension(), pooling_mode="mean")
    model = SentenceTransformer(modules=[encoder, pooling, models.Normalize()], device="cpu")
    rows = {text: base64.b64encode(model.encode([text])[0].astype("<f4").tobytes()).decode() for text in TEXTS}
    versions = {name: version(name) for name in ("sentence-transformers", "transformers", "torch")}
    content = json.dumps({"made_by": versions, "vectors": rows}, ensure_ascii=False)
    FILE.write_bytes(gzip.compress(content.encode(), mtime=0))


if __name__ == "__main__":
    main()
