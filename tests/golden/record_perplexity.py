"""Record the log-probabilities of texts in transformers with SmolLM2-135M: perplexity.json.gz.

    python tests/golden/record_perplexity.py FOLDER [--out DIR]

FOLDER holds smollm2-135m-instruct.q4_1.gguf from `mmeval fetch smollm2-135m`. Needs torch, transformers, gguf and
accelerate. transformers reads the GGUF file in float32. Its tokenizer for GGUF files does not split digits, as SmolLM2
does; the split is added here.

The file holds the texts with their contexts, token ids, settings and log-probabilities. A text is read as a whole, or
in the windows of the Hugging Face guide on perplexity. The loss that transformers computes is also recorded.
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any

GGUF = "smollm2-135m-instruct.q4_1.gguf"
SENTENCE = "A brown dog runs along the beach with a ball in its mouth."
LONG = " ".join(
    f"On day {day} the {animal} went to the {place}, looked around, and {deed}."
    for day, (animal, place, deed) in enumerate(
        (animal, place, deed)
        for animal in ("dog", "old cat", "grey heron")
        for place in ("harbour", "market", "railway station")
        for deed in ("came back hungry", "found nothing", "slept until noon", "met a friend")
    )
)
TEXTS: list[dict[str, Any]] = [
    {"text": SENTENCE},
    {"text": "beach its with a brown runs ball in dog the along mouth A."},
    {"text": "two cats"},
    {"text": "The museum opened in 1987 and has 3,412 paintings on 4 floors."},
    {"text": "  spaces   here,\tand tabs\n\nand lines \n"},
    {"text": "naïve café — “quotes”, ½ cup, 🐕‍🦺 and 日本 Ω…"},
    {"text": "don't can't it's we'll HELLO_World foo.bar(baz) == 0x1F"},
    {"text": "A dog.", "bos": True},
    {"text": SENTENCE, "bos": True},
    {"text": " Paris.", "context": "What is the capital of France?"},
    {"text": " Paris.", "context": "What is the capital of Germany?"},
    {"text": " 42 people", "context": "How many people are in the picture?", "bos": True},
    {"text": LONG},
    {"text": LONG, "window": 128, "stride": 64},
    {"text": LONG, "window": 100, "stride": 99, "bos": True},
    {"text": " They all slept.", "context": LONG, "window": 128, "stride": 32},
]


def main() -> None:
    import torch
    import transformers
    from tokenizers import pre_tokenizers

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    tokenizer = transformers.AutoTokenizer.from_pretrained(args.folder, gguf_file=GGUF)
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(
        args.folder, gguf_file=GGUF, dtype=torch.float32, attn_implementation="eager"
    ).eval()

    def ids_of(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"]) if text else []

    for entry in TEXTS:
        context, text = ids_of(entry.get("context", "")), ids_of(entry["text"])
        if entry.get("bos"):
            context = [model.config.bos_token_id, *context]
        ids = torch.tensor([[*context, *text]])
        entry["ids"] = text
        window, stride = entry.get("window", 2048), entry.get("stride", 1024)
        scored: list[float] = []
        end_before = max(1, len(context))
        with torch.inference_mode():
            for begin in range(0, ids.shape[1], stride):
                end = min(begin + window, ids.shape[1])
                if end > end_before:
                    seen = ids[:, begin:end]
                    every = model(seen).logits[0, :-1].log_softmax(-1)
                    chosen = every.gather(1, seen[0, 1:, None])[:, 0]
                    scored += chosen[end_before - begin - 1 :].tolist()
                    end_before = end
            if len(context) <= 1 and ids.shape[1] <= window:
                entry["loss"] = float(model(ids, labels=ids).loss)
        entry["log_probabilities"] = scored
    versions = f"transformers {transformers.__version__}, torch {torch.__version__}"
    content = json.dumps({"version": versions, "texts": TEXTS}, ensure_ascii=False, indent=1).encode()
    (args.out / "perplexity.json.gz").write_bytes(gzip.compress(content, 9, mtime=0))


if __name__ == "__main__":
    main()
