"""Tokenize texts for CLIP and SigLIP: token ids, cut to the model's length, and the position of the pooled token.

Both follow transformers. CLIP needs no padding, because no token sees later ones. It pools the end token: the token
with the highest id if the configuration says `eos_token_id: 2` (as OpenAI's do), else the first end token. SigLIP was
trained on texts padded to the full length, sees the padding, and pools the last token.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence

import msgspec

from multimodal_eval.models.clip.graphs import ClipConfig
from multimodal_eval.models.source import Model
from multimodal_eval.models.tokenizer_file import open_tokenizer

_LEGACY_END = 2
_SETTINGS = "tokenizer_config.json"
_PUNCTUATION = str.maketrans("", "", string.punctuation)


class _TokenizerConfig(msgspec.Struct, frozen=True):
    """tokenizer_config.json. A token is a string or an object with `content`."""

    model_max_length: float | None = None
    tokenizer_class: str | None = None
    pad_token: object = None

    @property
    def pad(self) -> str | None:
        """The padding token."""
        content = self.pad_token.get("content") if isinstance(self.pad_token, dict) else self.pad_token
        return content if isinstance(content, str) else None


class ClipTexts:
    """The tokenizer of one model."""

    def __init__(self, model: Model) -> None:
        config = ClipConfig.of(model)
        has_settings = (model.folder / _SETTINGS).is_file()
        settings = model.read(_SETTINGS, _TokenizerConfig) if has_settings else _TokenizerConfig()
        self.family, self.end = config.family, config.text.eos_token_id
        self.longest = min(config.text.max_position_embeddings, int(settings.model_max_length or 1 << 30))
        self.tokenizer = open_tokenizer(model)
        self.tokenizer.enable_truncation(self.longest)
        self.tokenizer.no_padding()
        self.without_punctuation = settings.tokenizer_class in ("SiglipTokenizer", "SiglipTokenizerFast")
        if self.family == "siglip":
            pad = settings.pad or "</s>"
            self.tokenizer.enable_padding(
                length=self.longest, pad_token=pad, pad_id=self.tokenizer.token_to_id(pad) or 0
            )

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text. SigLIP's are padded to the full length, CLIP's are not."""
        prepared = [self._prepared(text) for text in texts]
        return [encoding.ids for encoding in self.tokenizer.encode_batch_fast(prepared)]

    def pooled_position(self, ids: Sequence[int]) -> int:
        """The position of the token whose vector represents the text."""
        if self.family == "siglip":
            return len(ids) - 1
        if self.end == _LEGACY_END:
            return max(range(len(ids)), key=ids.__getitem__)
        return ids.index(self.end) if isinstance(self.end, int) and self.end in ids else 0

    def are_cut(self, texts: Sequence[str]) -> list[bool]:
        """Whether each text is longer than the model reads. A token has a byte or more: short texts need no check."""
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
