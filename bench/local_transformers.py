"""How fast `transformers:DIR` answers, beside bare `generate` calls of transformers with the same batches.

    python bench/local_transformers.py [--width 2048] [--layers 16] [--requests 256] [--tokens 64]

The model has random weights: it reads an image and a text, and writes until the limit of tokens. On CUDA if there is a
GPU. The bare calls get inputs that are prepared already, so the ratio shows what requests, prompts and images cost.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for the models of the tests

import numpy as np
import torch
from PIL import Image

from multimodal_eval.core.config import GenerationConfig, Parameters
from multimodal_eval.core.conversation import Part
from multimodal_eval.core.conversation import Turn as ReadTurn
from multimodal_eval.generate.protocol import Generator, Media, Request, Text, Turn
from multimodal_eval.generate.registry import find_generator
from multimodal_eval.models.language.torch_writer import Conversation, TorchWriter
from multimodal_eval.models.source import find_model
from tests.models.language.tiny_multimodal import write_llava

SIZES = (1, 8, 32, 128)


def png(seed: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (200, 300, 3), np.uint8)).save(stream, "PNG")
    return stream.getvalue()


async def asked(generator: Generator, requests: list[Request]) -> int:
    answers = await asyncio.gather(*map(generator.answer, requests))
    return sum(answer.output_tokens or 0 for answer in answers)


def bare(writer: TorchWriter, images: list[bytes], size: int, tokens: int) -> float:
    """Seconds of `generate` for all batches."""
    seconds = 0.0
    for start in range(0, len(images), size):
        opened = [Image.open(io.BytesIO(image)).convert("RGB") for image in images[start : start + size]]
        turns = [(ReadTurn("user", (Part("image", each), Part("text", "what is it?"))),) for each in opened]
        inputs = writer._inputs([Conversation(turn) for turn in turns])
        inputs = {name: writer._on_device(value) for name, value in inputs.items() if name != "labels"}
        started = time.perf_counter()
        with torch.inference_mode():
            writer.model.generate(**inputs, max_new_tokens=tokens, do_sample=False, pad_token_id=0)
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds += time.perf_counter() - started
    return seconds


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name, default in (("width", 2048), ("layers", 16), ("requests", 256), ("tokens", 64)):
        arguments.add_argument(f"--{name}", type=int, default=default)
    options = arguments.parse_args()
    machine = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    images = [png(seed) for seed in range(options.requests)]
    with tempfile.TemporaryDirectory() as folder:
        heads = max(2, options.width // 128)
        shape = {"num_attention_heads": heads, "num_key_value_heads": heads, "num_hidden_layers": options.layers}
        write_llava(Path(folder), hidden_size=options.width, intermediate_size=options.width * 3, **shape)
        writer = TorchWriter(find_model(folder))
        count = sum(parameter.numel() for parameter in writer.model.parameters())
        print(f"{count / 1e6:,.0f} million parameters, {machine}, {options.requests} requests of an image and a text")
        print(f"{'batch':>5} {'requests/s':>10} {'tokens/s':>9} {'bare requests/s':>15} {'ratio':>6}")
        for size in SIZES:
            used = images[: max(size, options.requests * size // SIZES[-1], 8)]
            parameters = Parameters(max_tokens=options.tokens, extra={"batch_size": size})
            generator = find_generator(GenerationConfig(model=f"transformers:{folder}", parameters=parameters))
            requests = [
                Request(
                    str(number), (Turn("user", (Media("image", "image/png", image), Text("what is it?"))),), parameters
                )
                for number, image in enumerate(used)
            ]
            asyncio.run(asked(generator, requests[:size]))  # opens the model
            bare(writer, used[:size], size, options.tokens)
            started = time.perf_counter()
            tokens = asyncio.run(asked(generator, requests))
            ours = time.perf_counter() - started
            theirs = bare(writer, used, size, options.tokens)
            rates = len(used) / ours, tokens / ours, len(used) / theirs
            print(f"{size:5} {rates[0]:10.1f} {rates[1]:9,.0f} {rates[2]:15.1f} {rates[0] / rates[2]:6.2f}", flush=True)


if __name__ == "__main__":
    main()
