"""Do the tests notice small faults? python -m tools.mutations [--only NAME ...]

tools/mutations.toml lists faults: an operator, a bound, a dropped check, a wrong sign, swapped arguments. Each is made
in a copy of the project, and the tests run there until one fails: first those that name the module, then those of its
package and tests/contract, then all default tests; then the same with the slow ones. A test that notices a fault must
pass without it. A test that hangs has noticed the fault.

    python -m tools.mutations --list
    python -m tools.mutations --default-only               # without the slow tests
    python -m tools.mutations --only holm-factor last-year # try these again

Prints the share of faults that the default tests notice, and both suites together, and fails if one is too low. Results
are kept in .mutations.json, so that an interrupted run continues; remove that file after a change of the tests. All of
it takes about an hour on two cores. The environment variable PYTEST_ADDOPTS is for other numbers of processes: "-n 8".
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
FAULTS = Path(__file__).with_suffix(".toml")
PACKAGE = "src/multimodal_eval"
LEAST = {"default": 0.90, "both": 0.98}  # the shares of faults that the suites must notice
HANGS = 1800  # seconds of one test; the slowest takes a few minutes
ENDLESS = 3 * 3600  # seconds of one run of pytest: a module may hang while it is imported
OWN_TEST = "tests/tools/test_mutations.py"  # compares the list of faults with the sources
SLOW = ("-m", "slow")
_FIRST = re.compile(r"^(?:FAILED|ERROR) (tests/\S+\.py(?:::[^\[\n]+?(?:\[.*?\])?)?)(?= - |$)", re.M)


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One small fault: `old`, which occurs once in a file of the package, becomes `new`."""

    name: str
    file: str
    kind: str
    old: str
    new: str

    def made_in(self, text: str) -> str:
        """The text of the file with the fault."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: {self.file} must have its `old` text once. It has it {count} times.")
        return text.replace(self.old, self.new)

    def place(self, root: Path = ROOT) -> str:
        """The file with the line of the fault."""
        before, _, _ = (root / PACKAGE / self.file).read_text(encoding="utf-8").partition(self.old)
        return f"{self.file}:{before.count(chr(10)) + 1}"


class _Faults(msgspec.Struct, forbid_unknown_fields=True):
    fault: list[Fault]


class Result(msgspec.Struct, frozen=True):
    """Who noticed a fault: `related`, `default`, `slow` or `nobody`; `not default` if the slow tests were not tried."""

    fault: Fault
    noticed_by: str
    test: str = ""
    seconds: int = 0

    @property
    def by_default(self) -> bool:
        """Whether the default tests notice it."""
        return self.noticed_by in ("related", "default")

    @property
    def by_any(self) -> bool:
        """Whether some test notices it."""
        return self.by_default or self.noticed_by == "slow"


def read_faults(path: Path = FAULTS) -> list[Fault]:
    """The faults of a list, each with a name of its own."""
    with path.open("rb") as file:
        faults = msgspec.convert(tomllib.load(file), _Faults).fault
    names = [fault.name for fault in faults]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{path.name} has two faults with the same name: {', '.join(twice)}")
    return faults


def related_tests(root: Path, file: str) -> tuple[list[str], list[str]]:
    """The test files that name a module of the package, and the folders of tests of its package."""
    *packages, module = Path(file).with_suffix("").parts
    parent = ".".join(("multimodal_eval", *packages))
    named = re.compile(rf"{re.escape(parent)}(?:\.{module}\b| import \(?[^()]*\b{module}\b)")
    tests = sorted((root / "tests").rglob("test_*.py"))
    near = [
        path
        for path in tests
        if path.stem == f"test_{module.strip('_')}" or named.search(path.read_text(encoding="utf-8"))
    ]
    depth = next((d for d in range(len(packages), 0, -1) if (root / "tests").joinpath(*packages[:d]).is_dir()), 0)
    folders = ["/".join(("tests", *packages[:depth]))] if depth else []
    folders += ["tests/contract"] if (root / "tests/contract").is_dir() else []
    return [path.relative_to(root).as_posix() for path in near], folders


@dataclass
class Project:
    """A copy of the project in which faults are made."""

    root: Path
    healthy: set[str] = field(default_factory=set)  # tests that pass without a fault
    failing: set[str] = field(default_factory=set)  # tests that fail without one, and are left out

    @classmethod
    def copied(cls, folder: Path) -> Project:
        """A copy of all files that git knows or could know, and of the compiled module."""
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in filter(None, listed.split("\0")):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, folder / name)
        native = importlib.util.find_spec("multimodal_eval._native")
        if native is None or native.origin is None:
            raise SystemExit("multimodal_eval is not installed in this environment: pip install '.[test]'")
        shutil.copy2(native.origin, folder / PACKAGE)
        return cls(folder)

    @property
    def environment(self) -> dict[str, str]:
        """Imports come from the copy. The fetched models are those of the project."""
        weights = os.environ.get("MMEVAL_TEST_WEIGHTS") or str(ROOT / ".weights")
        return {**os.environ, "PYTHONPATH": str(self.root / "src"), "MMEVAL_TEST_WEIGHTS": weights}

    def refuse_other_imports(self) -> None:
        """Stop if the copy is not what is imported, or if its tests cannot be collected."""
        command = [sys.executable, "-c", "import multimodal_eval; print(multimodal_eval.__file__)"]
        done = subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, text=True, check=False)
        if not Path(done.stdout.strip()).is_relative_to(self.root):
            raise SystemExit(
                f"multimodal_eval is imported from {done.stdout.strip() or 'nowhere'}, though PYTHONPATH names a copy. "
                "An editable installation hides the copy: install the package without -e, as .ci/install does"
            )
        code, output = self.pytest("--collect-only", "-q", "-n", "0")
        if code:
            raise SystemExit(f"the tests cannot be collected without a fault:\n{output[-2000:]}")

    @contextlib.contextmanager
    def with_fault(self, fault: Fault) -> Iterator[None]:
        """Make a fault, and take it back."""
        path = self.root / PACKAGE / fault.file
        text = path.read_text(encoding="utf-8")
        try:
            self._write(path, fault.made_in(text))
            yield
        finally:
            self._write(path, text)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        """Write a module and remove its bytecode, which would be used for a text of the same second and size."""
        path.write_text(text, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def pytest(self, *arguments: str) -> tuple[int, str]:
        """The exit status and output of pytest; the status is -1 if it had to be ended."""
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-o", f"faulthandler_timeout={HANGS}"]
        left_out = (f"--deselect={test}" for test in sorted(self.failing))
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            tests = subprocess.Popen(
                [*command, f"--ignore={OWN_TEST}", *left_out, *arguments],
                cwd=self.root,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = tests.wait(ENDLESS)
            except subprocess.TimeoutExpired:
                code = -1
            finally:
                with contextlib.suppress(ProcessLookupError):  # what the tests have started, and is still there
                    os.killpg(tests.pid, signal.SIGKILL)
                tests.wait()
            output.seek(0)
            return code, output.read()

    def first_failure(self, fault: Fault, *arguments: str) -> str | None:
        """The first test that fails because of a fault; None if all pass. Tests that fail without it are left out."""
        while True:
            with self.with_fault(fault):
                code, output = self.pytest("-x", *arguments)
            if code in (0, 5):  # 5: there are no such tests
                return None
            failed = _FIRST.search(output)
            if failed is None:
                return "(pytest hangs)" if code == -1 else f"(pytest ends with {code})"
            if self._passes_without(test := failed[1]):
                return f"{test} (its process died, or it hangs)" if "crashed while running" in output else test
            if test in self.failing:
                raise SystemExit(f"{test} fails without a fault and cannot be left out:\n{output[-2000:]}")
            self.failing.add(test)

    def _passes_without(self, test: str) -> bool:
        if test not in self.healthy and self.pytest("-n", "0", "-m", "", test)[0] == 0:
            self.healthy.add(test)
        return test in self.healthy

    def noticed(self, fault: Fault, *, slow: bool) -> Result:
        """Who notices a fault: the tests run from the nearest to all, the slow ones last and only if asked for."""
        started = time.monotonic()
        near, folders = related_tests(self.root, fault.file)
        stages = [("related", near), ("related", folders), ("default", ["tests"])]
        if slow:
            stages += [("slow", [*SLOW, *near, *folders]), ("slow", [*SLOW, "tests"])]
        for suite, arguments in stages:
            test = self.first_failure(fault, *arguments) if arguments else None
            if test is not None:
                return Result(fault, suite, test, round(time.monotonic() - started))
        nobody = "nobody" if slow else "not default"
        return Result(fault, nobody, seconds=round(time.monotonic() - started))


@dataclass
class Results:
    """The results so far, in a file."""

    path: Path
    by_name: dict[str, Result] = field(default_factory=dict)

    def load(self) -> None:
        """Read what an earlier run has found out."""
        if self.path.is_file():
            stored = msgspec.json.decode(self.path.read_bytes(), type=list[Result])
            self.by_name = {result.fault.name: result for result in stored}

    def known(self, fault: Fault, *, slow: bool) -> Result | None:
        """The result of this very fault, if it says enough."""
        result = self.by_name.get(fault.name)
        if result is None or result.fault != fault or (slow and result.noticed_by == "not default"):
            return None
        return result

    def add(self, result: Result) -> None:
        """Keep a result."""
        self.by_name[result.fault.name] = result
        self.path.write_bytes(msgspec.json.format(msgspec.json.encode(list(self.by_name.values())), indent=1))


def line(result: Result) -> str:
    """One row of the table."""
    return (
        f"{result.fault.name:<32} {result.fault.kind:<17} {result.noticed_by:<11} {result.seconds:>5} s  {result.test}"
    )


def report(results: Sequence[Result], *, slow: bool) -> tuple[str, bool]:
    """The survivors and both shares, and whether the shares suffice."""
    survivors = [f"  {result.fault.name:<32} {result.fault.place()}" for result in results if not result.by_any]
    lines = ["survivors:", *survivors] if survivors else []
    suffices = True
    counts = {"default": sum(result.by_default for result in results)}
    if slow:
        counts["both"] = sum(result.by_any for result in results)
    for suite, count in counts.items():
        share = count / len(results)
        suffices &= share >= LEAST[suite]
        name = "the default tests" if suite == "default" else "both suites"
        lines.append(f"{name}: {count} of {len(results)} faults, {share:.1%}; the aim is {LEAST[suite]:.0%}")
    return "\n".join(lines), suffices


def chosen_faults(names: Sequence[str]) -> list[Fault]:
    """The faults with these names; all without names."""
    faults = {fault.name: fault for fault in read_faults()}
    if unknown := [name for name in names if name not in faults]:
        raise SystemExit(f"no fault is named {', '.join(unknown)}. `--list` shows all")
    return [faults[name] for name in names] if names else list(faults.values())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutations", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="try only these faults, and again")
    parser.add_argument("--default-only", action="store_true", help="do not run the slow tests")
    parser.add_argument("--list", action="store_true", help="list the faults and end")
    chosen = parser.parse_args(arguments)
    faults, slow = chosen_faults(chosen.only), not chosen.default_only
    if chosen.list:
        print("\n".join(f"{fault.name:<32} {fault.kind:<17} {fault.place()}" for fault in faults))
        return 0
    results = Results(ROOT / ".mutations.json")
    results.load()
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        project = Project.copied(Path(folder).resolve())
        project.refuse_other_imports()
        for fault in faults:
            if chosen.only or results.known(fault, slow=slow) is None:
                results.add(project.noticed(fault, slow=slow))
            print(line(results.by_name[fault.name]), flush=True)
    text, suffices = report([results.by_name[fault.name] for fault in faults], slow=slow)
    print(text)
    if project.failing:
        print(f"left out, because they fail without a fault: {', '.join(sorted(project.failing))}")
    return 0 if suffices else 1


if __name__ == "__main__":
    sys.exit(main())
