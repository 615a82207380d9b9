"""Samples that each metric scores, with different values."""

from __future__ import annotations

import io

from multimodal_eval import Box, Sample
from tests.golden.clip.images import golden_image

CAPTIONS = [
    Sample(
        id="1", generated_answer="a red dog runs on the beach", references=["a dog runs on the beach", "the red dog"]
    ),
    Sample(id="2", generated_answer="two cats sleep", references=["a cat sleeps on a chair", "two cats"]),
    Sample(id="3", generated_answer="a train", expected_answer="a bus in the city"),
    Sample(id="4", generated_answer="ein Hund läuft", references=["ein brauner Hund läuft am Strand"], caption="a dog"),
]


def png(number: int) -> bytes:
    """A small image, different for each number."""
    stream = io.BytesIO()
    golden_image(number, (40 + 3 * number, 33)).save(stream, "PNG")
    return stream.getvalue()


IMAGES = [
    Sample(
        id=sample.id,
        generated_answer=sample.generated_answer,
        references=sample.references,
        expected_answer=sample.expected_answer,
        image=png(number),
    )
    for number, sample in enumerate(CAPTIONS)
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

TRANSCRIPTS = [
    Sample(id="1", generated_answer="the cat sat on mat", references=["the cat sat on the mat"]),
    Sample(id="2", generated_answer="Twenty-five dollars!", references=["$25", "twenty five dollars"]),
    Sample(id="3", generated_answer="it is a naïve colour", expected_answer="it's a naive color"),
    Sample(id="4", generated_answer="no", references=["no"]),
]

TOKENS = [
    Sample(id="1", generated_answer="a red dog", logprobs=[-2.0, -0.5, -1.0]),
    Sample(id="2", generated_answer="two cats sleep", perplexity=12.5),
    Sample(id="3", logprobs=[-0.25, -0.75]),
    Sample(id="4", perplexity=1.0),
]

SURPRISES = [
    Sample(id="1", generated_answer="a red dog", perplexity=1.0),
    Sample(id="2", generated_answer="two cats sleep", perplexity=12.5),
    Sample(id="3", perplexity=4),
]

OBJECTS = [
    Sample(id="1", generated_answer="a dog and a cat", references=["a dog runs", "a puppy"]),
    Sample(id="2", generated_answer="two cats on a bed", references=["a cat sleeps"], metadata={"objects": ["bed"]}),
    Sample(id="3", generated_answer="a train", metadata={"objects": ["bus", "person"]}),
    Sample(id="4", generated_answer="a man with a hot dog and his dog", expected_answer="someone eats a hot dog"),
]

LABELS = [
    Sample(id="1", generated_answer="Yes", expected_answer="yes", annotations={"a": "yes", "b": "no", "c": "yes"}),
    Sample(id="2", generated_answer="no", expected_answer="maybe", annotations={"a": "maybe", "b": None, "c": ""}),
    Sample(id="3", generated_answer="maybe", expected_answer="maybe", annotations={"a": "no", "b": "maybe"}),
    Sample(id="4", generated_answer="perhaps", expected_answer="no", annotations={"a": "yes"}),
]

REGIONS = [
    Sample(id="1", generated_answer="[0, 0, 10, 5]", boxes=[Box((0, 0, 10, 10))]),
    Sample(id="2", generated_answer="(40, 60)", boxes=[Box((0, 0, 10, 10)), Box((30, 30, 50, 70))]),
    Sample(id="3", generated_answer="The box is [2, 2, 9, 9].", boxes=[Box((0, 0, 10, 10))]),
    Sample(id="4", generated_answer="eine Katze", boxes=[Box((1, 1, 2, 2))]),
]

CHOICES = [
    Sample(id="1", generated_answer="**B**", choices=["a dog", "a cat"], expected_answer="B"),
    Sample(id="2", generated_answer="Answer: A. Because B is wrong", choices={"A": "2", "B": "3"}, expected_answer="3"),
    Sample(id="3", generated_answer="I cannot see it", choices=["red", "blue", "green"], references=["A", "C"]),
]

YES_NO = [
    Sample(id="1", generated_answer="Yes, there is a dog.", expected_answer="yes"),
    Sample(id="2", generated_answer="No.", expected_answer="Yes"),
    Sample(id="3", generated_answer="I am not sure", references=["no"]),
    Sample(id="4", generated_answer="There is no dog", expected_answer="No"),
]

RECORDED = [
    Sample(id="1", generated_answer="a dog", metadata={"score": 0.5}),
    Sample(id="2", metadata={"score": True}),
    Sample(id="3", generated_answer="a train", metadata={"score": "-1.25"}),
]

EXAMPLES: dict[str, list[Sample]] = {
    **dict.fromkeys(["bleu", "cider", "cider_d", "cider_r", "meteor", "rouge_l", "spice", "spider"], CAPTIONS),
    **dict.fromkeys(["chrf", "rouge_1", "rouge_2", "rouge_lsum", "sacrebleu", "ter"], CAPTIONS),
    **dict.fromkeys(["bertscore", "hallucination_metric", "semantic_similarity"], CAPTIONS),
    **dict.fromkeys(["exact_match", "token_f1", "vqa_accuracy"], ANSWERS),
    **dict.fromkeys(["anls", "anls_star", "contains", "edit_distance", "gqa", "ocrbench"], ANSWERS),
    **dict.fromkeys(["open_answer", "relaxed_accuracy"], ANSWERS),
    **dict.fromkeys(["clip_score", "clipscore", "ref_clipscore"], IMAGES),
    **dict.fromkeys(["acc_at_iou", "iou", "point_in_box"], REGIONS),
    **dict.fromkeys(["cer", "mer", "wer", "wil"], TRANSCRIPTS),
    "contextual_relevance": QUESTIONS,
    "perplexity": TOKENS,
    "hidden_metric": SURPRISES,
    **dict.fromkeys(["f1_any_match", "f1_majority", "f1_strict", "soft_score"], LABELS),
    **dict.fromkeys(["chair_i", "chair_s"], OBJECTS),
    "multiple_choice": CHOICES,
    "yes_no": YES_NO,
    "recorded": RECORDED,
}
