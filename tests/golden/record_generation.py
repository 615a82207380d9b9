"""Record what transformers writes with SmolLM2-135M-Instruct: generation.json.gz.

    python tests/golden/record_generation.py FOLDER [--out DIR]

FOLDER is the one that `mmeval fetch smollm2-135m` creates. Needs transformers, torch and gguf. Each prompt is rendered
with the model's chat template and continued by `generate(do_sample=False)` in float32. The log-probability of each
token is the log-softmax of the logits.
"""

from __future__ import annotations

import argparse
import gzip
import json
from importlib import import_module
from pathlib import Path
from typing import Any

MOST = 32  # tokens
PROMPTS: list[list[dict[str, str]]] = [
    [{"role": "user", "content": text}]
    for text in (
        "What is the capital of France?",
        "Write one sentence about a dog.",
        "What colour is the sky on a clear day?",
        "Name three fruits.",
        "Is the sun a star? Answer yes or no.",
        "How many legs does a spider have?",
        "Translate into French: good morning",
        "Complete: roses are red, violets are",
        "Describe a beach in a few words.",
        "2 + 2 =",
        "Which is larger, an elephant or a mouse?",
        "List the days of the week, separated by commas.",
        "What do bees make?",
        "Give a caption for a photo of two children who play football in a park.",
        "Опишите кошку одним предложением.",
        "print('hello') in Python prints what?",
    )
] + [
    [
        {"role": "system", "content": "Answer with one word."},
        {"role": "user", "content": "What is the opposite of hot?"},
    ],
    [{"role": "system", "content": "You write captions."}, {"role": "user", "content": "A red car by the sea."}],
    [
        {"role": "user", "content": "My name is Ada."},
        {"role": "assistant", "content": "Nice to meet you, Ada."},
        {"role": "user", "content": "What is my name?"},
    ],
    [{"role": "user", "content": "Summarise in one sentence: " + "The dog ran to the lake and came back wet. " * 12}],
]


def written(model: Any, tokenizer: Any, messages: list[dict[str, str]]) -> dict[str, Any]:
    """The prompt, the tokens that follow, and their log-probabilities."""
    torch = import_module("torch")
    text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    made = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=MOST,
        do_sample=False,
        return_dict_in_generate=True,
        output_logits=True,
    )
    tokens = made.sequences[0, ids.shape[1] :].tolist()
    scores = [float(row[0].log_softmax(-1)[token]) for row, token in zip(made.logits, tokens, strict=True)]
    return {
        "messages": messages,
        "rendered": text,
        "prompt": ids[0].tolist(),
        "tokens": tokens,
        "text": tokenizer.decode(tokens, skip_special_tokens=True),
        "log_probabilities": [round(score, 6) for score in scores],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    args = parser.parse_args()
    torch, library = import_module("torch"), import_module("transformers")
    (gguf,) = args.folder.glob("*.gguf")
    tokenizer = library.AutoTokenizer.from_pretrained(str(args.folder), gguf_file=gguf.name)
    parts = import_module("tokenizers").pre_tokenizers  # the file's split, which transformers does not read
    split = [parts.Digits(individual_digits=True), parts.ByteLevel(add_prefix_space=False)]
    tokenizer.backend_tokenizer.pre_tokenizer = parts.Sequence(split)
    field = import_module("gguf").GGUFReader(gguf).fields["tokenizer.chat_template"]
    tokenizer.chat_template = field.contents()
    model = library.AutoModelForCausalLM.from_pretrained(
        str(args.folder), gguf_file=gguf.name, dtype=torch.float32
    ).eval()
    with torch.inference_mode():
        texts = [written(model, tokenizer, messages) for messages in PROMPTS]
    content = json.dumps({"most": MOST, "texts": texts}, ensure_ascii=False).encode()
    (args.out / "generation.json.gz").write_bytes(gzip.compress(content, 9, mtime=0))


if __name__ == "__main__":
    main()
