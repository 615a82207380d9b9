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

OBJECTS = [
    Sample(id="1", generated_answer="a dog and a cat", references=["a dog runs", "a puppy"]),
    Sample(id="2", generated_answer="two cats on a bed", references=["a cat sleeps"], metadata={"objects": ["bed"]}),
    Sample(id="3", generated_answer="a train", metadata={"objects": ["bus", "person"]}),
    Sample(id="4", generated_answer="a man with a hot dog and his dog", expected_answer="someone eats a hot dog"),
]

EXAMPLES: dict[str, list[Sample]] = {
    **dict.fromkeys(["bleu", "cider", "cider_d", "hallucination_metric", "meteor", "rouge_l"], CAPTIONS),
    **dict.fromkeys(["chair_i", "chair_s"], OBJECTS),
}
