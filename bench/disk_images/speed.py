"""`mmeval score` alone: ViT-B/32 and ViT-L/14@336, stages, and growth by ten."""

from __future__ import annotations

from image_run import Run

from disk_images.bench import Bench, say, shown_format
from disk_images.torchmetrics_files import compare

HOUR = 3600
LARGE_PEER = 256


def stages(bench: Bench) -> None:
    """ViT-B/32, with the time of each stage."""
    for number_format in bench.formats:
        run = bench.scored("b32", number_format, bench.images)
        run.shown(f"mmeval, {shown_format(number_format)}")
        run.shown_stages()


def large(bench: Bench) -> None:
    """ViT-L/14@336 beside torchmetrics; fewer images in float32, which takes ten times as long."""
    compare(bench, "l14", {"+bf16": bench.images, "": min(bench.images, bench.large)}, min(bench.images, LARGE_PEER))


def growth(bench: Bench) -> None:
    """Ten times as many images: time and memory. The files are used several times, so there is no cache."""
    runs = []
    for count in (bench.many // 10, bench.many):
        run = bench.scored("b32", bench.formats[0], count, cache=False)
        run.shown(f"mmeval, {count:,} images, no cache")
        runs.append(run)
    few, many = runs
    say(f"  growth by ten: time without start x {many.work / few.work:.1f}, memory x {many.memory / few.memory:.2f}")
    many.shown_stages()
    cost_model(many)


def cost_model(run: Run) -> None:
    """Hours for more images and GPUs, if every GPU has as many cores as here."""
    per_image = 1 / run.steady if run.steady else run.scoring / run.samples
    alone = (run.stages["input"] + run.stages["results"]) / run.samples
    say(f"  cost model: hours = images ({alone * 1e6:.1f} + {per_image * 1e6:.0f} / GPUs) microseconds")
    say("    images" + "".join(f"{gpus:>8} GPU{'s' if gpus > 1 else ' '}" for gpus in (1, 4, 8)))
    for images in (10**6, 10**8, 10**9):
        hours = [images * (alone + per_image / gpus) / HOUR for gpus in (1, 4, 8)]
        say(f"    {images:>6.0e}" + "".join(f"{value:>11.2f} h" for value in hours))
