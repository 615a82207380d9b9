"""Ray on one GPU beside the local engine, and the GPU beside the CPU."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from disk_images.bench import Bench, say, shown_difference


def ray(bench: Bench) -> None:
    """Four actors share the GPU (or two the cores), and one of them is killed when the first part is stored."""
    try:
        import ray  # noqa: F401 - checks whether it is installed
    except ImportError:
        say("  Ray is not installed: not measured")
        return
    count = bench.images if bench.small else 2 * bench.images  # no cache: the files are used twice
    local = bench.scored("b32", bench.formats[0], count, cache=False)
    local.shown("mmeval, local engine")
    expected = local.scores()
    shares = ("--gpus-per-worker", "0.25") if bench.device == "cuda" else ("--workers", "2")
    for kills in (False, True):
        killed: list[int] = []
        if kills:
            shutil.rmtree(bench.folder / "run")
            threading.Thread(target=_kill_an_actor, args=(bench.folder / "run", killed), daemon=True).start()
        run = bench.scored("b32", bench.formats[0], count, "--engine", "ray", *shares, cache=False)
        run.shown(f"mmeval on Ray, {' '.join(shares)}, {len(killed)} actors killed")
        if kills and not killed:
            raise RuntimeError("no actor was found: nothing was killed")
        shown_difference("score of the local engine", expected, run.scores())


def _kill_an_actor(folder: Path, killed: list[int]) -> None:
    """Wait until this run has stored a part, and kill the first actor."""
    while not list((folder / "scores").glob("part-*.parquet")):
        time.sleep(0.05)
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # it has ended
            if not killed and (entry / "cmdline").read_bytes().startswith(b"ray::_ModelActor"):
                os.kill(int(entry.name), signal.SIGKILL)
                killed.append(int(entry.name))


def equal(bench: Bench) -> None:
    """The scores of the GPU beside those of onnxruntime on the CPU, in both number formats."""
    count = min(bench.images, 64 if bench.small else 1000)
    on_cpu = replace(bench, cpu=True)
    cpu = on_cpu.scored("b32", "", count)
    cpu.shown("mmeval on the CPU, onnxruntime")
    expected = cpu.scores()
    for number_format in bench.formats:
        run = bench.scored("b32", number_format, count)
        shown_difference(f"score of the CPU{number_format}", run.scores(), expected)
