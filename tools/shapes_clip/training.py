"""Training with a contrastive loss between images and captions, including false captions of each image."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from tools.shapes_clip.dataset import CLASSES, TRUE, Chunk
from tools.shapes_clip.model import Encoders, normalised
from tools.shapes_clip.supply import Supply

LogLine = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """The settings of a training run."""

    batch: int = 1024
    wrong: int = 8  # false captions per image and step
    rate: float = 1e-3
    decay: float = 0.05
    warm_up: float = 0.03  # of the time
    facts: float = 1.0  # initial weight of predicting the facts from the image; it decreases to 0
    log_every: float = 10.0
    save_every: float = 60.0


def fact_loss(answers: torch.Tensor, facts: torch.Tensor) -> torch.Tensor:
    """The mean cross entropy of predicting the facts of a scene."""
    parts = enumerate(answers.float().split(CLASSES, dim=1))
    return torch.stack([functional.cross_entropy(part, facts[:, at]) for at, part in parts]).mean()


def contrast(look: torch.Tensor, read: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """The symmetric contrastive loss. `read` has the shape (n, 1 + wrong, width), with the true caption first."""
    true, wrong = read[:, 0], read[:, 1:]
    every = scale * look @ true.T
    false = scale * torch.einsum("nd,nkd->nk", look, wrong)
    target = torch.arange(len(look), device=look.device)
    among_captions = functional.cross_entropy(torch.cat((every, false), 1), target)
    # An image's own false captions separately, so that the captions of other images do not dominate them.
    among_false = functional.cross_entropy(torch.cat((every.diagonal()[:, None], false), 1), torch.zeros_like(target))
    return (among_captions + functional.cross_entropy(every.T, target)) / 2 + among_false


def _compiled(call: Callable[..., Any], on: bool, log_line: LogLine) -> Callable[..., Any]:
    """The compiled function. After a failure to compile, the original function is used."""
    if not on:
        return call
    fast: Callable[..., Any] | None = torch.compile(call, dynamic=False)

    def attempt(*values: Any) -> Any:
        nonlocal fast
        if fast is not None:
            try:
                return fast(*values)
            except Exception as failure:  # noqa: BLE001  continue without the compiler
                log_line(f"not compiled: {type(failure).__name__}: {str(failure)[:200]}")
                fast = None
        return call(*values)

    return attempt


def _groups(modules: list[torch.nn.Module], decay: float) -> list[dict[str, Any]]:
    weights = [weight for module in modules for weight in module.parameters()]
    matrices = [weight for weight in weights if weight.ndim >= 2]
    return [
        {"params": matrices, "weight_decay": decay},
        {"params": [weight for weight in weights if weight.ndim < 2], "weight_decay": 0.0},
    ]


def _rate(plan: Plan, share: float) -> float:
    """A cosine schedule over the elapsed share of the time, after a linear warm-up."""
    if share < plan.warm_up:
        return plan.rate * (share / plan.warm_up + 1e-3)
    return plan.rate * 0.5 * (1 + math.cos(math.pi * (share - plan.warm_up) / (1 - plan.warm_up)))


def train(
    clip: Any, supply: Supply, held_out: Chunk, plan: Plan, until: float, save: Callable[[Any], None], log_line: LogLine
) -> int:
    """Train until `time.monotonic()` reaches `until`. Returns the number of steps."""
    device, fast = supply.device, supply.device.type == "cuda"
    encoders = Encoders(clip.train())
    # Predicts the facts of a scene from the image features. It only helps training and is not saved.
    reader = torch.nn.Linear(clip.config.vision_config.hidden_size, sum(CLASSES), device=device)
    optimizer = torch.optim.AdamW(_groups([clip, reader], plan.decay), lr=plan.rate, betas=(0.9, 0.98), fused=fast)
    look, read = _compiled(encoders.look, fast, log_line), _compiled(encoders.read, fast, log_line)
    start = logged = saved = time.monotonic()
    steps, share = 0, 0.0
    while share < 1:
        if supply.failure is not None:
            raise RuntimeError("the data could not be drawn") from supply.failure
        for group in optimizer.param_groups:
            group["lr"] = _rate(plan, share)
        batch = supply.batch(plan.batch, plan.wrong)
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            pooled, seen = look(batch["images"])
            words = read(batch["captions"].flatten(0, 1)).view(plan.batch, 1 + plan.wrong, -1)
            facts_loss = fact_loss(reader(pooled), batch["facts"])
        loss = contrast(seen, words, clip.logit_scale.exp())
        optimizer.zero_grad(set_to_none=True)
        (loss + plan.facts * (1 - share) * facts_loss).backward()
        torch.nn.utils.clip_grad_norm_(clip.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            clip.logit_scale.clamp_(max=math.log(100))
        if steps == 0:
            value = loss.item()  # waits for compilation
            log_line(f"first step after {time.monotonic() - start:.1f} s, loss {value:.3f}")
            start = time.monotonic()  # the schedule covers the remaining time
        steps += 1
        now = time.monotonic()
        if now - logged > plan.log_every:
            with torch.no_grad():
                among_all, among_own = spot_check(encoders, held_out)
            log_line(
                f"step {steps} loss {loss.item():.3f} facts {facts_loss.item():.3f} "
                f"found {among_all:.3f} own {among_own:.3f} scale {clip.logit_scale.exp().item():.1f} "
                f"scenes {supply.filled} seconds {now - start:.0f}"
            )
            logged = now
        if now - saved > plan.save_every:
            save(clip)
            saved = time.monotonic()
        if fast and steps % 8 == 0:
            torch.cuda.synchronize()  # so that the clock measures finished work
        share = (time.monotonic() - start) / max(1e-6, until - start)
    return steps


def spot_check(encoders: Encoders, held_out: Chunk) -> tuple[float, float]:
    """The shares of held-out images whose caption ranks first among all captions, and among its false captions."""
    device = encoders.clip.logit_scale.device
    look = encoders.look(normalised(torch.from_numpy(held_out.images).to(device)))[1]
    captions = torch.from_numpy(held_out.captions).to(device).long()
    n, per_image, words = captions.shape
    read = encoders.read(captions.view(n * per_image, words)).view(n, per_image, -1)
    among_all = (look @ read[:, 0].T).argmax(1) == torch.arange(n, device=device)
    among_own = torch.einsum("nd,nkd->nk", look, torch.cat((read[:, :1], read[:, TRUE:]), 1)).argmax(1) == 0
    return among_all.float().mean().item(), among_own.float().mean().item()


def save_model(clip: Any, folder: Path) -> None:
    """Save the model in half precision, in the layout of transformers."""
    from transformers import CLIPModel

    copy = CLIPModel(clip.config)
    copy.load_state_dict(clip.state_dict())
    copy.half().save_pretrained(str(folder))
