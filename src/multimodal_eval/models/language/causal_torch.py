"""Any causal language model of transformers in torch, on CPU or CUDA. Needs the extra `[torch]`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from multimodal_eval.core.optional import require
from multimodal_eval.models.batching import equal_lengths
from multimodal_eval.models.language.tokens import Tokens
from multimodal_eval.models.source import Model
from multimodal_eval.models.tokenizer_file import FILE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

TOKENS_PER_BATCH = 2048
LONGEST = 1 << 20  # tokens, if the model states no limit


def label_of(model: Model) -> str:
    """Name and revision; `+torch` because the last digits differ."""
    return f"{model.label}+torch"


def check(model: Model) -> None:
    """Check that the model and the packages are available."""
    model.check()
    for package in ("torch", "transformers"):
        require(package, extra="torch", purpose=f"the language model {model.name!r}")


class TorchCausalLM:
    """A transformers model. Only code of that library is run, and weights are read from safetensors."""

    def __init__(self, model: Model, languages: frozenset[str] = frozenset()) -> None:
        model.verify()
        purpose = f"the language model {model.name!r}"
        torch = require("torch", extra="torch", purpose=purpose)
        library = require("transformers", extra="torch", purpose=purpose)
        self.torch, self.label, self.languages = torch, label_of(model), languages
        safe = {"trust_remote_code": False, "local_files_only": True}
        folder = str(model.folder)
        if (model.folder / FILE).is_file():  # used directly, not through a tokenizer class of the library
            self.tokens: Callable[[Sequence[str]], list[list[int]]] = Tokens(model)
        else:
            self.tokenizer = library.AutoTokenizer.from_pretrained(folder, **safe)
            self.tokens = self._tokens
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        opened = library.AutoModelForCausalLM.from_pretrained(folder, use_safetensors=True, **safe)
        self.model = opened.eval().float().to(self.device)
        self.bos: int | None = self.model.config.bos_token_id
        self.longest = int(getattr(self.model.config, "max_position_embeddings", None) or LONGEST)

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        encode = self.tokenizer
        return [encode(text, add_special_tokens=False, split_special_tokens=True)["input_ids"] for text in texts]

    def score(self, rows: Sequence[Sequence[int]], firsts: Sequence[int]) -> list[Floats]:
        """For each row, the log-probabilities of the ids from `first` (at least 1) on, given all earlier ids."""
        import numpy as np

        scores: list[Floats] = [np.empty(0, np.float32)] * len(rows)
        for positions, batch in equal_lengths(rows, tokens=TOKENS_PER_BATCH, min_rows=1):
            ids = self.torch.tensor(batch, device=self.device)
            with self.torch.inference_mode():
                every = self.model(ids).logits[:, :-1].float().log_softmax(-1)
                chosen = every.gather(2, ids[:, 1:, None])[:, :, 0].cpu().numpy()
            for position, row in zip(positions, chosen, strict=True):
                scores[position] = row[firsts[position] - 1 :]
        return scores
