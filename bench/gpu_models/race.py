"""What all sections share: the device, the size, timing, and the lines that they print."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch


class Setting:
    """Set once by the command line."""

    device = "cpu"
    small = False


def sized(small: Any, full: Any) -> Any:
    """The size of an input: `small` is quick on a CPU and measures nothing."""
    return small if Setting.small else full


def synchronize() -> None:
    if Setting.device == "cuda":
        torch.cuda.synchronize()


def seconds(work: Callable[..., Any], *arguments: Any, rounds: int = 3, **named: Any) -> float:
    """The median time, after one round to warm up. With 0 rounds, the time of one round without warming up."""
    times = []
    for _ in range(1 if Setting.small or not rounds else rounds + 1):
        synchronize()
        start = time.perf_counter()
        work(*arguments, **named)
        synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:] or times)


def each(work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> None:
    for row in arguments:
        work(*row)


def say(text: str) -> None:
    print(text, flush=True)


def show(name: str, count: int, took: float, base: float, unit: str = "texts") -> None:
    say(f"  {name:44} {count / took:12,.0f} {unit}/s {base / took:6.2f}x{_peak()}")


def failed(name: str, fault: Exception) -> None:
    say(f"  {name:44} failed: {type(fault).__name__}: {str(fault).splitlines()[0][:120]}")


def _peak() -> str:
    if Setting.device != "cuda":
        return ""
    used = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.reset_peak_memory_stats()
    return f"  peak {used:5.1f} GiB"
