"""One run of `mmeval score` in a process of its own, with the seconds of its stages and its memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any


def child(target: Path, arguments: list[str]) -> None:
    """Run the command and write the seconds of its stages, and when each stage of the start ended.

    That is the time since the command was started, and the processor time of all threads of this process.
    """
    stages: defaultdict[str, float] = defaultdict(float)
    marks: dict[str, tuple[float, float]] = {}

    def mark(name: str) -> None:
        marks.setdefault(name, (time.time() - float(os.environ[STARTED]), time.process_time()))

    mark("interpreter started")
    from multimodal_eval.cli.main import run_process
    from multimodal_eval.data.runs.run_folder import RunFolder
    from multimodal_eval.evaluation.decoding import pool as decoding
    from multimodal_eval.evaluation.decoding.pool import decoding_pool
    from multimodal_eval.models.cache import VectorCache
    from multimodal_eval.models.clip import by_name
    from multimodal_eval.run import start as opening
    from multimodal_eval.run.steps.aggregate import Seal
    from multimodal_eval.run.steps.check import Check
    from multimodal_eval.run.steps.read import Read
    from multimodal_eval.run.steps.score import Score

    mark("package imported")
    marked(partial(mark, "plan made, model checked"), opening, "make_plan")

    timed(stages, "images: waiting", decoding.Submitted, "wait")
    timed(stages, "model: images", by_name.CachedImageTextEncoder, "_images")
    timed(stages, "model: texts", by_name.CachedImageTextEncoder, "_texts")
    timed(stages, "cache", VectorCache, "_look_up")
    timed(stages, "cache", VectorCache, "_store")
    timed(stages, "parts: reading", RunFolder, "read_batch")
    timed(stages, "parts: writing", RunFolder, "write_part")
    timed(stages, "parts: writing", RunFolder, "write_pieces")
    timed(stages, "parts: all", Score, "part")
    ends: list[float] = []
    score = Score.part

    def scored(self: Any, number: int) -> Any:
        result = score(self, number)
        ends.append(time.perf_counter())
        mark("first part scored")
        return result

    Score.part = scored  # type: ignore[assignment, method-assign]
    timed(stages, "input", Read, "make")
    marked(partial(mark, "input read"), Check, "make")
    timed(stages, "scoring", Score, "make")
    finished: list[float] = []
    finish = Seal.make

    def timed_finish(*arguments: Any, **options: Any) -> None:
        finish(*arguments, **options)
        finished.append(time.perf_counter())

    Seal.make = timed_finish  # type: ignore[method-assign]
    opener = by_name.find

    def find(name: str) -> Any:
        entry = opener(name)

        def opened() -> Any:
            with adding(stages, "opening the model"):
                model = entry.open()
            mark("model opened")
            return model

        return type(entry)(entry.label, entry.check, opened)

    by_name.find = find
    try:
        sys.argv = ["mmeval", *arguments]
        run_process()
    finally:
        pool = decoding_pool()
        processes = dict(pool.seconds) if pool is not None else {}
        stages["results"] = finished[-1] - ends[-1] if ends else 0.0
        mark("last part and results")
        content = {"stages": stages, "processes": processes, "workers": pool.workers if pool else 0}
        content["marks"] = marks
        target.write_text(json.dumps(content))


STARTED = "BENCH_STARTED"  # the time when the command was started


class adding:  # noqa: N801 - used like a function
    def __init__(self, stages: defaultdict[str, float], name: str) -> None:
        self.stages, self.name = stages, name

    def __enter__(self) -> None:
        self.started = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.stages[self.name] += time.perf_counter() - self.started


def timed(stages: defaultdict[str, float], name: str, owner: Any, method: str) -> None:
    original = getattr(owner, method)

    def wrapper(*arguments: Any, **options: Any) -> Any:
        with adding(stages, name):
            return original(*arguments, **options)

    setattr(owner, method, wrapper)


def marked(note: Callable[[], None], owner: Any, method: str) -> None:
    """Call `note` when the function has returned."""
    original = getattr(owner, method)

    def wrapper(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        note()
        return result

    setattr(owner, method, wrapper)


def memory_of(process: int) -> int:
    """The proportional set size of a process and its descendants, in bytes."""
    total = 0
    try:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
        for task in Path(f"/proc/{process}/task").iterdir():
            for child_process in (task / "children").read_text().split():
                total += memory_of(int(child_process))
    except OSError:  # it has ended
        pass
    return total


class Run:
    """One run of `mmeval score`."""

    def __init__(self, folder: Path, source: Path, model: str, samples: int, *extra: str, cache: bool = True) -> None:
        self.samples, self.folder = samples, folder / "run"
        shutil.rmtree(folder / "home" / "cache", ignore_errors=True)  # the checksum of the weights is kept
        shutil.rmtree(self.folder, ignore_errors=True)
        target = folder / "stages.json"
        target.unlink(missing_ok=True)
        command = [sys.executable, __file__, str(target), "score", str(source), "--metrics"]
        command += ["clip_score", "--option", f"clip_score.model={model}", "-o", str(self.folder), *extra]
        settings = {"MMEVAL_HOME": str(folder / "home")}
        settings |= {} if cache else {"MMEVAL_CACHE": "off"}
        settings[STARTED] = str(time.time())
        started = time.perf_counter()
        with (folder / "log").open("w+") as log:
            process = subprocess.Popen(command, env={**os.environ, **settings}, stdout=log, stderr=log)
            try:
                self.memory = self._watched(process)
            except BaseException:  # the time of the bench is over
                process.kill()
                process.wait()
                raise
            self.seconds = time.perf_counter() - started
            if process.returncode:
                log.seek(0)
                raise RuntimeError(log.read()[-3000:])
        content = json.loads(target.read_text())
        self.stages, self.processes, self.workers = content["stages"], content["processes"], content["workers"]
        self.marks, self.steady = content["marks"], self._steady()
        self.scoring = self.stages["scoring"] - self.stages.get("opening the model", 0.0)
        self.work = self.stages["input"] + self.scoring  # and the rest is the start of the process and the model

    def _steady(self) -> float:
        """Samples per second from the second tenth of the parts on, by the times at which their scores were stored."""
        sizes = json.loads((self.folder / "run.json").read_text())["parts"]
        paths = sorted((self.folder / "scores").glob("part-*.parquet"))
        stored = sorted(zip((path.stat().st_mtime_ns / 1e9 for path in paths), sizes, strict=True))
        counted = stored[max(2, len(stored) // 10) : -1]
        if len(counted) < 3:
            return 0.0
        return float(sum(size for _, size in counted[1:]) / (counted[-1][0] - counted[0][0]))

    def _watched(self, process: subprocess.Popen[bytes]) -> int:
        peak = 0
        while True:
            peak = max(peak, memory_of(process.pid))
            try:
                process.wait(2)  # not more often: to read it takes a tenth of a second
                return peak
            except subprocess.TimeoutExpired:
                pass

    def scores(self) -> Any:
        from multimodal_eval import load_run

        return load_run(self.folder).scores().column("clip_score").to_numpy()

    def shown(self, name: str) -> None:
        scoring, work, whole = (self.samples / seconds for seconds in (self.scoring, self.work, self.seconds))
        print(
            f"  {name:36} {self.steady:7,.0f} images/s after the first parts, {scoring:7,.0f} scoring, "
            f"{work:7,.0f} without start, {whole:7,.0f} whole command ({self.seconds:.1f} s, start "
            f"{self.seconds - self.work:.1f} s), {self.memory / 1e9:.2f} GB",
            flush=True,
        )

    def shown_stages(self) -> None:
        print("  microseconds per image in this process (threads overlap):")
        for stage, seconds in sorted(self.stages.items(), key=lambda item: -item[1]):
            print(f"    {stage:24} {seconds / self.samples * 1e6:8.0f}")
        if self.processes:
            print(f"  of {self.workers} decoding processes, and of the thread that takes their results:")
            total = self.scoring * self.workers
            for stage, seconds in self.processes.items():
                share = f"{seconds / total:5.0%} of their time" if stage != "hand over" else ""
                print(f"    {stage:24} {seconds / self.samples * 1e6:8.0f} {share}")


if __name__ == "__main__":
    child(Path(sys.argv[1]), sys.argv[2:])
