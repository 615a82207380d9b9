"""vdtk: the scorers of its command `vdtk score`, behind its PTB tokenizer."""

from __future__ import annotations

from typing import Any

PACKAGES = ("vdtk",)


def captions(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    from vdtk.metrics.bleu.bleu import Bleu
    from vdtk.metrics.cider.cider import CiderBase
    from vdtk.metrics.meteor.meteor import MeteorBase
    from vdtk.metrics.rouge.rouge import RougeBase
    from vdtk.metrics.tokenizer.ptbtokenizer import PTBTokenizer

    tokenizer = PTBTokenizer()
    references = tokenizer.tokenize(dict(enumerate(data["references"])))
    candidates = tokenizer.tokenize({image: [text] for image, text in enumerate(data["candidates"])})

    def computed(scorer: Any) -> Any:
        try:
            return scorer().compute_score(references, candidates)[0]
        except Exception as error:  # noqa: BLE001 - the reason becomes a note of the table
            return {"error": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"}

    bleu = computed(Bleu)
    scores: dict[str, Any] = {f"BLEU-{n}": bleu[n - 1] if isinstance(bleu, list | tuple) else bleu for n in range(1, 5)}
    for name, scorer in {"METEOR": MeteorBase, "ROUGE-L": RougeBase, "CIDEr": CiderBase}.items():
        value = computed(scorer)
        scores[name] = value if isinstance(value, dict) else float(value)
    return {"vdtk": scores}
