"""Texts to token ids by a model's tokenizer.json: every text as it is, nothing added, nothing cut."""

from __future__ import annotations

from collections.abc import Sequence

from multimodal_eval.models.source import Model

FILE = "tokenizer.json"


class Tokens:
    """A tokenizer of the tokenizers library. "<|im_end|>" in an answer is text like any other."""

    def __init__(self, model: Model) -> None:
        from tokenizers import Tokenizer

        self.tokenizer = Tokenizer.from_file(str(model.file(FILE)))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.tokenizer.encode_special_tokens = True

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without special tokens."""
        return [encoding.ids for encoding in self.tokenizer.encode_batch(list(texts), add_special_tokens=False)]
