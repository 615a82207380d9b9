"""SPICE: time, peak memory and growth.

    mmeval fetch spice
    python bench/spice.py DATA [--scales 5,50] [--threads 2]

DATA is a .json.gz with {"references": {id: [captions]}, "candidates": {id: caption}}; with the 1,000 COCO images of
bench/verify_coco.py, scale 5 is 5,000 images with five references each, and scale 50 ten times as many. Repeated
captions are parsed again, except inside a block of 1,024 images. Each scale runs in a process of its own. The time
covers everything after the imports and reading the file: opening the parser and WordNet, tokenizing, parsing and
comparing. On a busy machine, the CPU time tells more.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time

from captions_file import read_captions


def run_once(path: str, scale: int, threads: int) -> None:
    import numpy as np

    from multimodal_eval.text.parsing import open_parser
    from multimodal_eval.text.scene_graphs.captions import compared_captions

    candidates, references = read_captions(path, scale)
    before = _peak()
    start, cpu_start = time.perf_counter(), time.process_time()
    matches = compared_captions(open_parser(), candidates, references, threads=threads)
    mean = float(np.mean(np.fromiter((match.all.f for match in matches), np.float64, len(candidates))))
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    captions = len(candidates) + sum(map(len, references))
    print(
        f"{len(candidates):>8,} images {captions:>10,} captions  {seconds:7.2f} s, {cpu_seconds:.2f} s of CPU  "
        f"{captions / seconds:7,.0f} captions/s  peak {_peak():5.0f} MB ({before:.0f} MB before)  mean {mean:.4f}",
        flush=True,
    )


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--scales", default="5,50")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--once", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.once is not None:
        run_once(arguments.data, arguments.once, arguments.threads)
        return 0
    for scale in arguments.scales.split(","):
        command = [sys.executable, __file__, arguments.data, "--threads", str(arguments.threads), "--once", scale]
        subprocess.run(command, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
