"""Random texts, tokenizers and weights: nothing is downloaded.

Texts are words of syllables with the frequencies of a language, in a vocabulary of word pieces.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<image>", "<eos>")
SMOLLM = {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9}

rng = np.random.default_rng(0)


def _words() -> list[str]:
    syllables = [c + v for c in "bcdfghklmnprstvw" for v in "aeiou"] + ["st", "ing", "er", "ed", "ly"]
    drawn = ("".join(rng.choice(syllables, int(rng.integers(1, 5)))) for _ in range(40_000))
    return list(dict.fromkeys(drawn))


WORDS = _words()
SHARES = (1 / np.arange(1, len(WORDS) + 1) ** 1.1) / (1 / np.arange(1, len(WORDS) + 1) ** 1.1).sum()


def texts(count: int, low: int, high: int) -> list[str]:
    lengths = rng.integers(low, high, count)
    drawn = iter(rng.choice(len(WORDS), int(lengths.sum()), p=SHARES))
    return [" ".join(WORDS[next(drawn)] for _ in range(length)) for length in lengths]


def tokenizer() -> Tokenizer:
    """Word pieces: 25,000 words, and letters for the others."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = [*SPECIAL, *WORDS[:25_000], *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {name: number for number, name in enumerate(dict.fromkeys(names))}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.add_special_tokens(list(SPECIAL))
    ends = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    return made


def fast_tokenizer(**named: Any) -> Any:
    names = {"unk": "[UNK]", "pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    options = {f"{kind}_token": name for kind, name in names.items()}
    made = tokenizer()
    if named:  # a language model has no [CLS]
        made.post_processor = processors.TemplateProcessing(single="$A")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=512, **options, **named)


def random_weights(model: Any, scale: float = 2.0) -> Any:
    """Larger weights than at the start of training, so that every input matters."""
    torch.manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.normal_(0, scale * 0.02)
    return model.eval()
