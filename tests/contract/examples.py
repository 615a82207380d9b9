"""Samples that each metric scores, not all alike."""

from __future__ import annotations

from multimodal_eval import Sample

CAPTIONS = [
    Sample(
        id="1", generated_answer="a red dog runs on the beach", references=["a dog runs on the beach", "the red dog"]
    ),
    Sample(id="2", generated_answer="two cats sleep", references=["a cat sleeps on a chair", "two cats"]),
    Sample(id="3", generated_answer="a train", expected_answer="a bus in the city"),
    Sample(id="4", generated_answer="ein Hund läuft", references=["ein brauner Hund läuft am Strand"], caption="a dog"),
]

TOKENS = [
    Sample(id="1", generated_answer="a red dog", logprobs=[-2.0, -0.5, -1.0]),
    Sample(id="2", generated_answer="two cats sleep", perplexity=12.5),
    Sample(id="3", logprobs=[-0.25, -0.75]),
    Sample(id="4", perplexity=1.0),
]

EXAMPLES: dict[str, list[Sample]] = {
    **dict.fromkeys(["bleu", "cider", "cider_d", "meteor", "rouge_l"], CAPTIONS),
    "perplexity": TOKENS,
}
