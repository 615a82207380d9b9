"""SmolLM2 (135M) as a model: `mmeval fetch smollm2-135m` gets its weights, and onnxruntime runs it on this machine.

mmeval run questions.jsonl --model python:examples/models/text.py --metrics exact_match
"""

from multimodal_eval import Answer, Request
from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.generate.registry import find_generator

SMOLLM2 = find_generator(GenerationConfig(model="llama:smollm2-135m"))


async def model(request: Request) -> Answer:
    """The answer to the text of the request, of at most 24 tokens."""
    turns = request.turns
    parameters = Parameters(temperature=0.0, max_tokens=request.parameters.max_tokens or 24)
    return await SMOLLM2.answer(Request(request.id, turns, parameters))
