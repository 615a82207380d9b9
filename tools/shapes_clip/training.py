"""Training: contrast between pictures and captions, each picture against its own false captions too."""

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

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """The settings of a run."""

    batch: int = 1024
    wrong: int = 8  # false captions a picture and step
    rate: float = 1e-3
    decay: float = 0.05
    warm_up: float = 0.03  # of the time
    facts: float = 1.0  # weight, at first, of naming the facts from the picture; it falls to 0 by the end
    log_every: float = 10.0
    save_every: float = 60.0


def naming(answers: torch.Tensor, facts: torch.Tensor) -> torch.Tensor:
    """The mean cross entropy of naming each of a scene's facts."""
    parts = enumerate(answers.float().split(CLASSES, dim=1))
    return torch.stack([functional.cross_entropy(part, facts[:, at]) for at, part in parts]).mean()


def contrast(look: torch.Tensor, read: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """The symmetric contrastive loss; `read` is (n, 1 + wrong, width) with the true caption first."""
    true, wrong = read[:, 0], read[:, 1:]
    every = scale * look @ true.T
    own = scale * torch.einsum("nd,nkd->nk", look, wrong)
    target = torch.arange(len(look), device=look.device)
    among_captions = functional.cross_entropy(torch.cat((every, own), 1), target)
    # Its own false captions alone, so that the many other pictures' captions do not drown them.
    among_own = functional.cross_entropy(torch.cat((every.diagonal()[:, None], own), 1), torch.zeros_like(target))
    return (among_captions + functional.cross_entropy(every.T, target)) / 2 + among_own


def _compiled(call: Callable[..., Any], on: bool, say: Say) -> Callable[..., Any]:
    """The call compiled, or as it is from the first failure to compile on."""
    if not on:
        return call
    fast: Callable[..., Any] | None = torch.compile(call, dynamic=False)

    def attempt(*values: Any) -> Any:
        nonlocal fast
        if fast is not None:
            try:
                return fast(*values)
            except Exception as failure:  # noqa: BLE001  any trouble of the compiler's: go on without it
                say(f"not compiled: {type(failure).__name__}: {str(failure)[:200]}")
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
    """Cosine over the share of the time that is gone, after a linear start."""
    if share < plan.warm_up:
        return plan.rate * (share / plan.warm_up + 1e-3)
    return plan.rate * 0.5 * (1 + math.cos(math.pi * (share - plan.warm_up) / (1 - plan.warm_up)))


def train(
    clip: Any, supply: Supply, held_out: Chunk, plan: Plan, until: float, save: Callable[[Any], None], say: Say
) -> int:
    """Trains until `time.monotonic()` is `until`; returns the number of steps."""
    device, fast = supply.device, supply.device.type == "cuda"
    encoders = Encoders(clip.train())
    # Names a scene's facts from the picture's features: a help in training that is not kept.
    reader = torch.nn.Linear(clip.config.vision_config.hidden_size, sum(CLASSES), device=device)
    optimizer = torch.optim.AdamW(_groups([clip, reader], plan.decay), lr=plan.rate, betas=(0.9, 0.98), fused=fast)
    look, read = _compiled(encoders.look, fast, say), _compiled(encoders.read, fast, say)
    start = logged = saved = time.monotonic()
    steps, share = 0, 0.0
    while share < 1:
        if supply.failure is not None:
            raise RuntimeError("the data could not be drawn") from supply.failure
        for group in optimizer.param_groups:
            group["lr"] = _rate(plan, share)
        batch = supply.batch(plan.batch, plan.wrong)
        with torch.autocast(device.type, torch.bfloat16, enabled=fast):
            pooled, seen = look(batch["pictures"])
            words = read(batch["captions"].flatten(0, 1)).view(plan.batch, 1 + plan.wrong, -1)
            named = naming(reader(pooled), batch["facts"])
        loss = contrast(seen, words, clip.logit_scale.exp())
        optimizer.zero_grad(set_to_none=True)
        (loss + plan.facts * (1 - share) * named).backward()
        torch.nn.utils.clip_grad_norm_(clip.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            clip.logit_scale.clamp_(max=math.log(100))
        if steps == 0:
            value = loss.item()  # waits for the compiler
            say(f"first step after {time.monotonic() - start:.1f} s, loss {value:.3f}")
            start = time.monotonic()  # the schedule is of the time that is left
        steps += 1
        now = time.monotonic()
        if now - logged > plan.log_every:
            with torch.no_grad():
                found, own = spot_check(encoders, held_out)
            say(
                f"step {steps} loss {loss.item():.3f} facts {named.item():.3f} found {found:.3f} own {own:.3f} "
                f"scale {clip.logit_scale.exp().item():.1f} scenes {supply.filled} seconds {now - start:.0f}"
            )
            logged = now
        if now - saved > plan.save_every:
            save(clip)
            saved = time.monotonic()
        if fast and steps % 8 == 0:
            torch.cuda.synchronize()  # so that the clock is of work done, not of work asked for
        share = (time.monotonic() - start) / max(1e-6, until - start)
    return steps


def spot_check(encoders: Encoders, held_out: Chunk) -> tuple[float, float]:
    """Shares of held-out pictures whose caption is first among all the captions, and among their own false ones."""
    device = encoders.clip.logit_scale.device
    look = encoders.look(normalised(torch.from_numpy(held_out.pictures).to(device)))[1]
    captions = torch.from_numpy(held_out.captions).to(device).long()
    n, kept, words = captions.shape
    read = encoders.read(captions.view(n * kept, words)).view(n, kept, -1)
    found = (look @ read[:, 0].T).argmax(1) == torch.arange(n, device=device)
    own = torch.einsum("nd,nkd->nk", look, torch.cat((read[:, :1], read[:, TRUE:]), 1)).argmax(1) == 0
    return found.float().mean().item(), own.float().mean().item()


def save_model(clip: Any, folder: Path) -> None:
    """The model in half precision, in transformers' layout."""
    from transformers import CLIPModel

    copy = CLIPModel(clip.config)
    copy.load_state_dict(clip.state_dict())
    copy.half().save_pretrained(str(folder))
