"""Log-probabilities beside transformers in padded batches as one would write them: file order, and sorted by length."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

from gpu_models.race import Setting, failed, say, seconds, show, sized
from gpu_models.random_inputs import SMOLLM, fast_tokenizer, random_weights, texts
from multimodal_eval.models.language import causal

KEY_HEADS, VOCABULARY = 3, 49_152


def llama(folder: Path) -> None:
    layers = sized({**SMOLLM, "num_hidden_layers": 2, "intermediate_size": 512}, SMOLLM)
    config = transformers.LlamaConfig(
        **layers, num_key_value_heads=KEY_HEADS, vocab_size=VOCABULARY, tie_word_embeddings=True,
        max_position_embeddings=8192, bos_token_id=1, eos_token_id=6)  # fmt: skip
    with torch.device(Setting.device):
        model = transformers.LlamaForCausalLM(config)
    random_weights(model, 1.0).save_pretrained(folder)
    fast_tokenizer(eos_token="<eos>").save_pretrained(folder)


def plain(model: Any, rows: list[list[int]], size: int, *, is_sorted: bool) -> Callable[[], list[Any]]:
    """Log-probabilities with transformers: padded batches with a mask, the logits of all positions."""
    order = sorted(range(len(rows)), key=lambda n: len(rows[n])) if is_sorted else list(range(len(rows)))

    def work() -> list[Any]:
        scores: list[Any] = [None] * len(rows)
        for start in range(0, len(order), size):
            batch = order[start : start + size]
            tensors = [torch.tensor(rows[n]) for n in batch]
            ids = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True).to(Setting.device)
            lengths = torch.tensor([len(rows[n]) for n in batch], device=Setting.device)
            mask = (torch.arange(ids.shape[1], device=Setting.device)[None] < lengths[:, None]).long()
            with torch.inference_mode():
                logits = model(ids, attention_mask=mask).logits[:, :-1].float().log_softmax(-1)
                chosen = logits.gather(2, ids[:, 1:, None])[:, :, 0].cpu().numpy()
            for n, row in zip(batch, chosen, strict=True):
                scores[n] = row[: len(rows[n]) - 1]
        return scores

    return work


def perplexity(folder: Path) -> None:
    llama(folder)
    sets = {"answers": texts(sized(20, 3_000), 3, 60), "documents": texts(sized(2, 24), 200, 1500)}
    few = sets["answers"][: sized(10, 100)]
    expected = causal.find(str(folder)).open().log_probabilities(few)
    for suffix, dtype in (("", torch.float32), ("+bf16", torch.bfloat16)):
        entry = causal.find(f"torch:{folder}{suffix}")
        started = time.perf_counter()
        ours = entry.open()
        took = time.perf_counter() - started
        say(f"\nperplexity, SmolLM2-135M, {entry.label}, opened in {took:.1f} s")
        scored = ours.log_probabilities(few)
        apart = max(np.abs(a - b).max() for a, b in zip(scored, expected, strict=True))
        say(f" {len(few)} texts: largest difference of a log-probability from the CPU {apart:.1e}")
        theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).to(Setting.device).eval()
        for title, batch in sets.items():
            compare_perplexities(theirs, ours, title, batch)
        del ours, theirs
        causal.CAUSAL_LMS.forget()


def compare_perplexities(theirs: Any, ours: Any, title: str, batch: list[str]) -> None:
    rows = ours.inner.tokens(batch)
    count = sum(map(len, rows))
    say(f" {title}: {len(rows):,} texts, {count:,} tokens, the longest {max(map(len, rows)):,}")
    base = 0.0
    for is_sorted in (False, True):
        times = {}
        for size in sized((4,), (64, 128) if title == "answers" else (4, 16)):
            name = f"transformers, {'sorted' if is_sorted else 'file order'}, batches of {size}"
            try:
                plain(theirs, rows[:size], size, is_sorted=False)()  # warms up
                times[name] = seconds(plain(theirs, rows, size, is_sorted=is_sorted), rounds=0)
            except torch.OutOfMemoryError as fault:
                failed(name, fault)
                torch.cuda.empty_cache()
        name = min(times, key=times.__getitem__)
        base = base or times[name]
        show(name, count, times[name], base, "tokens")
    firsts = [1] * len(rows)
    show("ours", count, seconds(ours.inner.score, rows, firsts, rounds=2), base, "tokens")
    show("ours, from texts", count, seconds(ours.log_probabilities, batch, rounds=2), base, "tokens")
