"""Other programs' names of metrics, and what to write here instead. docs/metric-names.md shows all tables.

Names are compared without case, spaces, hyphens and underscores: "ROUGE-L", "Rouge_L" and "rougel" are one name. They
are suggested, never replaced silently: several programs use one name for different formulas.
"""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["ALIASES", "JUDGES", "NOT_HERE", "metric_advice"]

# Another name -> the metric here, or the metrics with what tells them apart.
ALIASES: dict[str, dict[str, str]] = {
    "CIDEr": {
        "cider_d": "what coco-caption and papers print as CIDEr, 0 to 10",
        "cider": "the formula of the CIDEr paper, 0 to 1",
    },
    "CIDEr-D": {"cider_d": "0 to 10, as in coco-caption"},
    "CIDEr-R": {"cider_r": "0 to 10, for long texts"},
    "BLEU": {"bleu": "BLEU-4; BLEU-1 to 3 are its parts"},
    "BLEU-4": {"bleu": "BLEU-4; BLEU-1 to 3 are its parts"},
    "BLEU-1": {"bleu": "its part bleu.bleu_1"},
    "BLEU-2": {"bleu": "its part bleu.bleu_2"},
    "BLEU-3": {"bleu": "its part bleu.bleu_3"},
    "corpus_bleu": {"sacrebleu": "as sacrebleu computes it, 0 to 100", "bleu": "as coco-caption computes it, 0 to 1"},
    "METEOR": {"meteor": "version 1.5 by default"},
    "SPICE": {"spice": "with a parser of our own; close to the Java program, not equal"},
    "SPIDEr": {"spider": "the mean of SPICE and CIDEr-D"},
    "ROUGE": {
        "rouge_l": "as coco-caption computes it, for captions",
        "rouge_1": "words, as in rouge-score",
        "rouge_2": "pairs of words, as in rouge-score",
        "rouge_lsum": "longest common subsequence line by line, as in rouge-score",
    },
    "ROUGE-L": {
        "rouge_l": "as coco-caption computes it, for captions",
        "rouge_lsum": "with --option rouge_lsum.lines=false, as rouge-score computes it",
    },
    "ROUGE-1": {"rouge_1": "as rouge-score computes it"},
    "ROUGE-2": {"rouge_2": "as rouge-score computes it"},
    "ROUGE-Lsum": {"rouge_lsum": "as rouge-score computes it"},
    "sacreBLEU": {"sacrebleu": "its corpus BLEU, 0 to 100"},
    "TER": {"ter": "edits per 100 words, as sacrebleu computes it"},
    "chrF": {"chrf": "as sacrebleu computes it, 0 to 100"},
    "chrF++": {"chrf": "with --option chrf.word_order=2"},
    "chrF2": {"chrf": "beta is 2 by default"},
    "POPE": {"yes_no": "its accuracy, precision, recall, F1 and yes ratio"},
    "MME": {"yes_no": "with --task mme"},
    "MMMU": {"multiple_choice": "with --option multiple_choice.rule=mmmu-pro@2025 or another rule"},
    "MCQ": {"multiple_choice": "accuracy of the letters that a rule reads"},
    "ChartQA": {"relaxed_accuracy": "numbers with a tolerance of 5%"},
    "relaxed": {"relaxed_accuracy": "numbers with a tolerance of 5%"},
    "DocVQA": {"anls": "edit similarity to the nearest reference"},
    "Acc@0.5": {"acc_at_iou": "the threshold is an option"},
    "RefCOCO": {"acc_at_iou": "the threshold is an option", "iou": "the overlap itself"},
    "CLIPScore": {
        "clipscore": "as Hessel et al. define it, 0 to 2.5",
        "clip_score": "(cos + 1) / 2, 0 to 1, as the composites use it",
    },
    "CLIP-S": {"clipscore": "as Hessel et al. define it, 0 to 2.5"},
    "CLIP": {
        "clipscore": "as Hessel et al. define it, 0 to 2.5",
        "clip_score": "(cos + 1) / 2, 0 to 1, as the composites use it",
    },
    "RefCLIPScore": {"ref_clipscore": "as Hessel et al. define it"},
    "RefCLIP-S": {"ref_clipscore": "as Hessel et al. define it"},
    "PAC-S": {"clipscore": "with `variant=pac-s` and the model of PAC-S"},
    "RefPAC-S": {"ref_clipscore": "with `variant=pac-s` and the model of PAC-S"},
    "BERTScore": {"bertscore": "its F1; precision and recall are its parts"},
    "SBERT": {"semantic_similarity": "cosine of sentence embeddings"},
    "cosine similarity": {"semantic_similarity": "cosine of sentence embeddings"},
    "CHAIR": {"chair_i": "share of mentioned objects", "chair_s": "share of captions"},
    "CHAIRi": {"chair_i": "share of mentioned objects"},
    "CHAIRs": {"chair_s": "share of captions"},
    "hallucination": {"hallucination_metric": "support by the references", "chair_i": "objects not in the image"},
    "accuracy": {
        "exact_match": "equality with a reference",
        "vqa_accuracy": "agreement with ten people, as in VQA v2",
        "multiple_choice": "the letter that a rule reads out of the answer",
        "yes_no": "yes or no",
        "f1_strict": "macro F1 of labels",
    },
    "EM": {"exact_match": "equality with a reference"},
    "VQA": {"vqa_accuracy": "agreement with ten people, as in VQA v2"},
    "SQuAD F1": {"token_f1": "F1 of shared words"},
    "WIP": {"wil": "its part wil.preserved"},
    "F1": {
        "token_f1": "of shared words, as in SQuAD",
        "f1_strict": "macro F1 against the gold label",
        "f1_majority": "against the annotators' vote",
    },
    "macro F1": {"f1_strict": "against the gold label", "f1_majority": "against the annotators' vote"},
    "PPL": {"perplexity": "by a language model, or from the data"},
}

# A metric that this package does not have -> the nearest ones, with the reason why it is missing.
NOT_HERE: dict[str, tuple[tuple[str, ...], str]] = {
    "BLEURT": (("semantic_similarity",), "it needs a trained regression model"),
    "COMET": (("semantic_similarity",), "it scores translations with a trained model"),
    "MoverScore": (("semantic_similarity",), "sentence embeddings are compared instead of tokens"),
    "WMD": (("semantic_similarity",), "sentence embeddings are compared instead of words"),
    "TIGEr": (("ref_clipscore",), "it needs a grounding model"),
    "ViLBERTScore": (("ref_clipscore",), "it needs a trained vision and language model"),
    "FID": ((), "it scores generated images, and this package scores text"),
    "GPTScore": (("perplexity",), "it needs the probabilities that a large language model gives to the answer"),
}

# A metric that asks a model -> the judge here.
JUDGES: dict[str, tuple[str, str]] = {
    "LLM judge": ("judge:helpfulness", "or another of `mmeval ls judges`"),
    "LLM as a judge": ("judge:helpfulness", "or another of `mmeval ls judges`"),
    "helpfulness": ("judge:helpfulness", "on a scale from 1 to 5"),
    "correctness": ("judge:correctness", "yes or no, by the references"),
    "preference": ("judge:preference", "against the answers in the column `baseline`"),
    "CLAIR": ("judge:clair", "by the references alone"),
    "G-Eval": ("judge:FILE.yaml", "with `expected: true` in the file"),
}


def _bare(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).casefold()


_ALIASES = {_bare(name): metrics for name, metrics in ALIASES.items()}
_JUDGES = {_bare(name): judge for name, judge in JUDGES.items()}
_NOT_HERE = {_bare(name): (name, *entry) for name, entry in NOT_HERE.items()}


def metric_advice(name: str, known: Collection[str]) -> str | None:
    """What to write instead of a name that another program uses; None if it is not in the tables.

    Only metrics in `known` are suggested.
    """
    bare = _bare(name)
    same = [metric for metric in known if _bare(metric) == bare]
    meant = {metric: about for metric, about in _ALIASES.get(bare, {}).items() if metric in known}
    if meant:
        return f"Did you mean {' or '.join(f'{metric!r} ({about})' for metric, about in meant.items())}?"
    if same:
        return f"Did you mean {same[0]!r}?"
    if bare in _JUDGES:
        judge, about = _JUDGES[bare]
        return f"Did you mean {judge!r} ({about})? It asks a model: --judge PROVIDER:NAME."
    if name.endswith((".yaml", ".yml")):
        return f"Did you mean 'judge:{name}', a judge that this file declares?"
    if bare in _NOT_HERE:
        published, nearest, reason = _NOT_HERE[bare]
        near = " or ".join(repr(metric) for metric in nearest if metric in known)
        return f"{published} is not here: {reason}.{f' The nearest here: {near}.' if near else ''}"
    return None
