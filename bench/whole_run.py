"""A whole command, from COCO files to the table, beside pycocoevalcap's script on the same captions.

    python bench/whole_run.py FLICKR8K [ROUNDS]

FLICKR8K is Flickr8k.token.txt (or .gz): the first 5,000 images, caption 1 as the candidate and the next four as
references. Ours runs with and without lint and report, start-up included; run `mmeval fetch meteor-1.5-en` first. The
peer needs Java and the package pycocoevalcap; without Java it is left out. Runs alternate. Prints the best time, peak
memory, the ratio, and the growth from a tenth of the images.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

IMAGES = 5_000
PEER = """
import sys
from pycocotools.coco import COCO
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.meteor.meteor import Meteor
from pycocoevalcap.rouge.rouge import Rouge
from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer
coco = COCO(sys.argv[1])
results = coco.loadRes(sys.argv[2])
images = results.getImgIds()
tokenize = PTBTokenizer().tokenize
references = tokenize({image: coco.imgToAnns[image] for image in images})
candidates = tokenize({image: results.imgToAnns[image] for image in images})
for scorer in (Bleu(4), Meteor(), Rouge(), Cider()):  # all of its script but SPICE
    scorer.compute_score(references, candidates)
"""


def captions(path: Path) -> Iterator[tuple[str, str]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for line in text.decode().splitlines():
        key, _, caption = line.partition("\t")
        yield key.partition("#")[0], caption


def write_pair(flickr8k: Path, folder: Path, count: int) -> list[str]:
    by_image: dict[str, list[str]] = {}
    for image, caption in captions(flickr8k):
        by_image.setdefault(image, []).append(caption)
    chosen = list(by_image.values())[:count]
    numbered = [(image, text) for image, texts in enumerate(chosen) for text in texts[1:]]
    annotations = [{"id": row, "image_id": image, "caption": text} for row, (image, text) in enumerate(numbered)]
    files = [folder / f"annotations-{count}.json", folder / f"results-{count}.json"]
    images = [{"id": image} for image in range(len(chosen))]
    content = {"info": {}, "licenses": [], "type": "captions", "images": images, "annotations": annotations}
    files[0].write_text(json.dumps(content))
    files[1].write_text(json.dumps([{"image_id": image, "caption": texts[0]} for image, texts in enumerate(chosen)]))
    return list(map(str, files))


def measured(command: list[str]) -> tuple[float, float]:
    """Seconds and megabytes of a command, by the system's `time`."""
    done = subprocess.run(["/usr/bin/time", "-f", "%e %M", *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])} failed:\n{done.stderr[-2000:]}")
    seconds, kilobytes = done.stderr.splitlines()[-1].split()
    return float(seconds), float(kilobytes) / 1024


def main(flickr8k: Path, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        ours = [sys.executable, "-m", "multimodal_eval.cli.main", "score"]
        contestants = {"mmeval score": [], "mmeval score --no-lint --no-report": ["--no-lint", "--no-report"]}
        best: dict[tuple[str, int], tuple[float, float]] = {}
        for count in (IMAGES // 10, IMAGES):
            pair = write_pair(flickr8k, folder, count)
            for _ in range(rounds):
                for name, options in contestants.items():
                    shutil.rmtree(folder / "run", ignore_errors=True)
                    keep(best, (name, count), measured([*ours, *pair, *options, "-o", str(folder / "run")]))
                if shutil.which("java"):
                    keep(best, ("pycocoevalcap", count), measured([sys.executable, "-c", PEER, *pair]))
        names = [*contestants, *(["pycocoevalcap"] if shutil.which("java") else [])]
        print(f"{'':36} {'500 images':>12} {'5,000 images':>13} {'growth':>7} {'memory':>9} {'ratio':>7}")
        for name in names:
            (small, _), (large, memory) = best[name, IMAGES // 10], best[name, IMAGES]
            ratio = large / best[names[0], IMAGES][0]
            print(f"{name:36} {small:10.2f} s {large:11.2f} s {large / small:6.1f}x {memory:6.0f} MB {ratio:6.1f}x")


def keep(best: dict[tuple[str, int], tuple[float, float]], key: tuple[str, int], run: tuple[float, float]) -> None:
    best[key] = min(run, best.get(key, run))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3)
