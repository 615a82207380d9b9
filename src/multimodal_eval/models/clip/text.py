"""Texts as CLIP and SigLIP read them: token ids, cut to the model's length, and the token that speaks for the text.

Both follow transformers. CLIP needs no padding, since no token sees those behind it, and takes the vector of the end
token: of the highest id where the configuration says `eos_token_id: 2` (as OpenAI's do), else of the first end token.
SigLIP was trained on texts filled up to the full length, sees the filling, and takes the last token's vector.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

from multimodal_eval.models.clip.graphs import tower_config
from multimodal_eval.models.source import Model

_LEGACY_END = 2
_PUNCTUATION = str.maketrans("", "", string.punctuation)


class ClipTexts:
    """The tokenizer of one model."""

    def __init__(self, model: Model) -> None:
        from tokenizers import Tokenizer

        own = tower_config(model.config, "text_config")
        settings = model.json("tokenizer_config.json") if (model.folder / "tokenizer_config.json").is_file() else {}
        self.family = str(model.config["model_type"])
        self.end = own.get("eos_token_id")
        self.longest = min(int(own["max_position_embeddings"]), int(settings.get("model_max_length") or 1 << 30))
        self.tokenizer = Tokenizer.from_file(str(model.file("tokenizer.json")))
        self.tokenizer.enable_truncation(self.longest)
        self.tokenizer.no_padding()
        self.without_punctuation = settings.get("tokenizer_class") in ("SiglipTokenizer", "SiglipTokenizerFast")
        if self.family == "siglip":
            pad = _token(settings.get("pad_token")) or "</s>"
            self.tokenizer.enable_padding(
                length=self.longest, pad_token=pad, pad_id=self.tokenizer.token_to_id(pad) or 0
            )

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids: CLIP's as many as there are, SigLIP's always the full length."""
        prepared = [self._prepared(text) for text in texts]
        return [encoding.ids for encoding in self.tokenizer.encode_batch(prepared)]

    def speaker(self, ids: Sequence[int]) -> int:
        """The position of the token whose vector is the text's."""
        if self.family == "siglip":
            return len(ids) - 1
        if self.end == _LEGACY_END:
            return max(range(len(ids)), key=ids.__getitem__)
        return ids.index(self.end) if self.end in ids else 0

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Which texts have more tokens than are read; a token has a byte or more, so that short texts are quick."""
        return [
            len(text.encode("utf-8", "replace")) > self.longest - 2
            and bool(self.tokenizer.encode(self._prepared(text)).overflowing)
            for text in texts
        ]

    def _prepared(self, text: str) -> str:
        """SigLIP was trained on lower case, its first version also without punctuation."""
        if self.family != "siglip":
            return text
        text = text.lower()
        return re.sub(r"\s+", " ", text.translate(_PUNCTUATION)).strip() if self.without_punctuation else text


def _token(entry: Any) -> str | None:
    """A token as tokenizer_config.json writes it: a string or an object."""
    content = entry.get("content") if isinstance(entry, dict) else entry
    return content if isinstance(content, str) else None
