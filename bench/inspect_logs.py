"""Read logs of inspect_ai: our reader beside inspect_ai's own, and an import of 200,000 samples.

    python3 -m venv V && V/bin/pip install inspect_ai==0.3.285
    V/bin/python tools/make_logs/inspect_ai_logs.py many FOLDER 5000
    python -m bench.inspect_logs FOLDER/many.eval --inspect V/bin/python [--import 200000]

Every reader runs in a process of its own, alternately. Printed are the best CPU time with the imports, and the peak
memory.
"""

from __future__ import annotations

import argparse
import json
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

OURS = """
import sys
from pathlib import Path
from multimodal_eval.data.logs.inspect_eval import FORMAT
from multimodal_eval.data.readers.problems import Problems
problems = Problems()
count = sum(1 for _ in FORMAT.records(Path(sys.argv[1]), problems))
problems.raise_if_any()
"""
INSPECT = """
import sys
from inspect_ai.log import read_eval_log
count = len(read_eval_log(sys.argv[1]).samples)
"""
IMPORT = """
import sys
from multimodal_eval.run.import_log import import_log
if __name__ == "__main__":
    imported = import_log(sys.argv[1], output=sys.argv[2], workers=int(sys.argv[3]))
    count = len(imported.run)
    for mean in imported.means:
        assert mean.mean is not None, mean
"""
MEASURED = """
import json, resource, time
own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([count, sum((*own[:2], *children[:2])), max(own.ru_maxrss, children.ru_maxrss) / 1024,
                  time.monotonic() - started]))
"""


def measured(python: str, code: str, *arguments: str) -> tuple[int, float, float, float]:
    """(samples, CPU seconds, peak MB, wall seconds) of a program in a process of its own."""
    head = "import time\nstarted = time.monotonic()\n"
    body = "".join(f"    {line}\n" for line in MEASURED.strip().splitlines())
    program = f"{head}{code}\nif __name__ == '__main__':\n{body}"
    run = subprocess.run([python, "-c", program, *arguments], check=True, capture_output=True, text=True)
    count, cpu, memory, wall = json.loads(run.stdout.splitlines()[-1])
    return count, cpu, memory, wall


def multiplied(source: Path, target: Path, count: int) -> None:
    """A log with `count` samples: those of another one again and again, under ids of their own."""
    import pyarrow as pa

    from multimodal_eval.data.logs.zip_entries import open_zip

    directory = bytearray()
    with open_zip(source) as entries, target.open("wb") as file:

        def write(name: str, content: bytes) -> None:
            raw, packed = name.encode(), pa.compress(content, codec="zstd", asbytes=True)
            sizes = (zlib.crc32(content), len(packed), len(content))
            offset = file.tell()
            file.write(struct.pack("<4s5H3L2H", b"PK\3\4", 45, 0x800, 93, 0, 33, *sizes, len(raw), 0) + raw + packed)
            fields = (45, 45, 0x800, 93, 0, 33, *sizes, len(raw), 0, 0, 0, 0, 0, offset)
            directory.extend(struct.pack("<4s6H3L5H2L", b"PK\1\2", *fields) + raw)

        names = [name for name in entries if name.startswith("samples/")]
        texts = [json.loads(entries.read(name)) for name in names[: min(len(names), 1000)]]
        write("_journal/start.json", entries.read("_journal/start.json"))
        for number in range(count):
            sample = texts[number % len(texts)]
            sample["id"] = number
            write(f"samples/{number}_epoch_1.json", json.dumps(sample).encode())
        write("header.json", entries.read("header.json"))
        start, total = file.tell(), count + 2
        file.write(directory)
        end = file.tell()
        file.write(struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, total, total, len(directory), start))
        file.write(struct.pack("<4sLQL", b"PK\6\7", 0, end, 1))
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0))


def main() -> None:
    """Print one line per reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--inspect", help="a Python with inspect_ai")
    parser.add_argument("--import", dest="count", type=int, help="import a log with that many samples")
    parser.add_argument("--workers", default="2")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    readers = {"ours": (sys.executable, OURS)} | ({"inspect_ai": (options.inspect, INSPECT)} if options.inspect else {})
    best: dict[str, tuple[int, float, float, float]] = {}
    for _ in range(options.repeat):
        for name, (python, code) in readers.items():
            result = measured(python, code, str(options.log))
            best[name] = min(best.get(name, result), result, key=lambda each: each[1])
    for name, (count, cpu, memory, wall) in best.items():
        print(f"{name:12}{count:>9,} samples {cpu:8.2f} s CPU {wall:8.2f} s {memory:8.0f} MB")
    if options.count:
        with tempfile.TemporaryDirectory() as folder:
            large = Path(folder, "large.eval")
            multiplied(options.log, large, options.count)
            count, cpu, memory, wall = measured(
                sys.executable, IMPORT, str(large), str(Path(folder, "run")), options.workers
            )
        print(f"{'import':12}{count:>9,} samples {cpu:8.2f} s CPU {wall:8.2f} s {memory:8.0f} MB")


if __name__ == "__main__":
    main()
