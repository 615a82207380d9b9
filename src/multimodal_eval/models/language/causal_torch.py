"""Any causal language model of transformers through torch, on CPU or CUDA: the extra `[torch]`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from multimodal_eval.core.optional import require
from multimodal_eval.models.batching import equal_lengths
from multimodal_eval.models.language.tokens import FILE, Tokens
from multimodal_eval.models.source import Model

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

TOKENS_AT_ONCE = 2048
LONGEST = 1 << 20  # tokens, of a model that does not say how many it reads


def label_of(model: Model) -> str:
    """Name and revision; the last digits are torch's."""
    return f"{model.label}+torch"


def check(model: Model) -> None:
    """Whether the model and the packages are here."""
    model.check()
    for package in ("torch", "transformers"):
        require(package, extra="torch", purpose=f"the language model {model.name!r}")


class TorchCausalLM:
    """A transformers model. Its code comes from that library alone, its weights from safetensors."""

    def __init__(self, model: Model, languages: frozenset[str] = frozenset()) -> None:
        model.verify()
        purpose = f"the language model {model.name!r}"
        torch = require("torch", extra="torch", purpose=purpose)
        library = require("transformers", extra="torch", purpose=purpose)
        self.torch, self.label, self.languages = torch, label_of(model), languages
        safe = {"trust_remote_code": False, "local_files_only": True}
        folder = str(model.folder)
        if (model.folder / FILE).is_file():  # as it is, whatever class the library has for this kind of model
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
        """For each row of ids the log-probabilities of those from `first` (at least 1) on, given all before."""
        import numpy as np

        scores: list[Floats] = [np.empty(0, np.float32)] * len(rows)
        for places, batch in equal_lengths(rows, tokens=TOKENS_AT_ONCE, fewest=1):
            ids = self.torch.tensor(batch, device=self.device)
            with self.torch.inference_mode():
                every = self.model(ids).logits[:, :-1].float().log_softmax(-1)
                chosen = every.gather(2, ids[:, 1:, None])[:, :, 0].cpu().numpy()
            for place, row in zip(places, chosen, strict=True):
                scores[place] = row[firsts[place] - 1 :]
        return scores
