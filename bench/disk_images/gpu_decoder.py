"""JPEG files decoded on the GPU: `torch:NAME+bf16+nvjpeg` beside a plain loop over the same files, and the CPU."""

from __future__ import annotations

import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from disk_images.bench import Bench, say, shown_difference

ROUNDS, BATCH, THREADS = 2, 256, 16
MEAN, DEVIATION = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def decoder(bench: Bench) -> None:
    """The plain loop, ours on the GPU and ours on the CPU in turn; then ten times as many images."""
    if bench.device != "cuda":
        say("  there is no GPU: not measured")
        return
    rates: defaultdict[str, list[float]] = defaultdict(list)
    scores: dict[str, Any] = {}
    for _ in range(ROUNDS):
        rate = plain_loop(bench)
        say(f"  plain loop: {rate:,.0f} images/s, without start")
        rates["plain loop"].append(rate)
        for name in ("+bf16+nvjpeg", "+bf16", "+nvjpeg", ""):
            run = bench.scored("b32", name, bench.images)
            run.shown(f"mmeval, {name or 'float32'}")
            rates[name].append(run.steady)
            scores[name] = run.scores()
    for name, values in rates.items():
        ratios = ", ".join(f"{a / b:.2f}" for a, b in zip(values, rates["plain loop"], strict=True))
        say(f"  {name or 'float32'} / plain loop: {ratios}")
    for number_format in ("+bf16", ""):
        same = scores[number_format]
        shown_difference(
            f"score with Pillow's pixels, {number_format or 'float32'}", scores[f"{number_format}+nvjpeg"], same
        )
    for count in (bench.many // 10, bench.many):
        run = bench.scored("b32", "+bf16+nvjpeg", count, cache=False)
        run.shown(f"mmeval, +nvjpeg, {count:,} images")
    run.shown_stages()


def plain_loop(bench: Bench) -> float:
    """Images per second of what people write: threads read, the GPU decodes and resizes, CLIP of transformers."""
    import torch
    from gpu_models.clip import captions
    from torchvision.io import ImageReadMode, decode_jpeg
    from transformers import CLIPModel

    model = CLIPModel.from_pretrained(str(bench.model_folder("b32")), dtype=torch.bfloat16).to("cuda").eval()
    mean, deviation = (torch.tensor(values, device="cuda").view(3, 1, 1) for values in (MEAN, DEVIATION))
    paths = sorted((bench.folder / "images").iterdir())[: bench.images]
    texts = captions(len(paths))

    def read(start: int) -> list[Any]:
        return [
            torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8) for path in paths[start : start + BATCH]
        ]

    def features(output: Any) -> Any:
        rows = getattr(output, "pooler_output", output)
        return rows / rows.norm(dim=-1, keepdim=True)

    def score(files: list[Any], start: int) -> Any:
        images = torch.stack(decode_jpeg(files, mode=ImageReadMode.RGB, device="cuda")).float()
        small = torch.nn.functional.interpolate(images, (224, 298), mode="bicubic", antialias=True)[..., 37:261]
        pixels = (small.clamp(0, 255) / 255 - mean) / deviation
        rows = features(model.get_image_features(pixel_values=pixels.to(torch.bfloat16)))
        ids = tokens(texts[start : start + len(files)])
        return (rows * features(model.get_text_features(**ids))).sum(1).float().cpu()

    tokens = _tokens(bench, torch)
    with torch.inference_mode(), ThreadPoolExecutor(THREADS) as threads:
        score(read(0), 0)
        started = time.perf_counter()
        starts = range(0, len(paths), BATCH)
        for start, files in zip(starts, threads.map(read, starts), strict=True):
            score(files, start)
        torch.cuda.synchronize()
        return len(paths) / (time.perf_counter() - started)


def _tokens(bench: Bench, torch: Any) -> Any:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(bench.model_folder("b32") / "tokenizer.json"))
    tokenizer.enable_padding()

    def tokens(texts: list[str]) -> dict[str, Any]:
        rows = tokenizer.encode_batch(texts)
        ids = torch.tensor([row.ids[:77] for row in rows], device="cuda")
        mask = torch.tensor([row.attention_mask[:77] for row in rows], device="cuda")
        return {"input_ids": ids, "attention_mask": mask}

    return tokens
