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

QUESTIONS = [
    Sample(id="1", question="What runs on the beach?", expected_answer="a dog", generated_answer="a red dog"),
    Sample(id="2", prompt="Answer shortly.", question="How many cats sleep?", generated_answer="two"),
    Sample(id="3", question="What is it?", expected_answer="a bus in the city", generated_answer="a train"),
]

ANSWERS = [
    Sample(id="1", generated_answer="Two dogs", references=["2 dogs", "two dogs", "dogs", "2 dogs", "the dog"]),
    Sample(id="2", generated_answer="yes", references=["no", "No", "yes", "maybe"]),
    Sample(id="3", generated_answer="red", expected_answer="red"),
    Sample(id="4", generated_answer="eine Katze", references=["ein Hund"] * 4),
]

EXAMPLES: dict[str, list[Sample]] = {
    **dict.fromkeys(["bleu", "cider", "cider_d", "meteor", "rouge_l", "semantic_similarity"], CAPTIONS),
    **dict.fromkeys(["exact_match", "vqa_accuracy"], ANSWERS),
    "contextual_relevance": QUESTIONS,
}
