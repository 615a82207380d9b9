"""Finished runs by kind and name: `<!-- setup: runs captions:first captions:second -->` makes two, in runs/.

`captions:first=boreas` has the answers of that system; without it, the name of the run chooses one.
"""

from __future__ import annotations

from tools.site.samples import samples
from tools.site.workspace import Workspace

METRICS = {
    "captions": ["rouge_l", "cider_d", "bleu"],
    "questions": ["vqa_accuracy", "exact_match"],
    "choices": ["multiple_choice"],
    "speech": ["wer", "exact_match"],
    "judged": ["rouge_l", "bleu"],
}
COMPOSITE = {"captions": {"metrics": ["rouge_l", "bleu"], "weights": {"rouge_l": 0.7, "bleu": 0.3}}}


def prepare(work: Workspace, *wanted: str) -> None:
    """Make the runs."""
    from multimodal_eval import evaluate

    for word in wanted:
        kind, _, named = word.partition(":")
        name, _, system = named.partition("=")
        path = work.folder / (name if "/" in name else f"runs/{name}")
        if kind == "composite":
            evaluate(
                samples("captions", system or path.name), task="captions", tasks=COMPOSITE, output=path, progress=False
            )
        else:
            evaluate(samples(kind, system or path.name), metrics=METRICS[kind], output=path, progress=False)
