"""The start of `mmeval score`: when each stage ends, from the command to the end of the process."""

from __future__ import annotations

import statistics
from collections import defaultdict

from disk_images.bench import Bench, say

ROUNDS = 3


def start(bench: Bench) -> None:
    """The same run several times; the first one also reads the files from the disk and hashes the weights."""
    count = 300 if bench.small else min(bench.images, 1024)
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    processors: defaultdict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        run = bench.scored("b32", bench.formats[0], count)
        before = used = 0.0
        for mark, (moment, processor) in run.marks.items():
            seconds[mark].append(moment - before)
            processors[mark].append(processor - used)
            before, used = moment, processor
        seconds["process ended"].append(run.seconds - before)
        seconds["whole command"].append(run.seconds)
    say(f"  seconds of each stage of the command, {count:,} images: median, every round, and of the processor")
    for mark, times in seconds.items():
        shown = " ".join(f"{value:.2f}" for value in times)
        processor = f"{statistics.median(processors[mark]):6.2f}" if mark in processors else ""
        say(f"    {mark:28} {statistics.median(times):6.2f}   ({shown}) {processor}")
