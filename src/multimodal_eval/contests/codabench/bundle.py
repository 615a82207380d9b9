"""The bundle of a shared task on Codabench: competition.yaml (version 2), scoring program, reference data, pages.

Reference:
    Codabench documentation, "Competition Bundle Structure" and "Yaml Structure" (docs.codabench.org).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from multimodal_eval import __version__
from multimodal_eval.contests.archives import Files, logo, packages_in
from multimodal_eval.contests.shared_task.judging import FILE, Column, reference_lines
from multimodal_eval.contests.shared_task.submitted_answers import ACCEPTED
from multimodal_eval.contests.shared_task.task import OPTIONS as TASK_OPTIONS
from multimodal_eval.contests.shared_task.task import PLUGINS, SharedTask, shared_task
from multimodal_eval.core.options import Option, Options, OptionValues

OPTIONS = Options(
    TASK_OPTIONS,
    docker_image=Option(str | None, None, help="the image that scores; null for python:3.X-slim with `packages`"),
    packages=Option(
        str | None, None, help="a folder with the installed packages, for an image without multimodal-eval"
    ),
    time_limit=Option(int, 600, help="seconds for one submission"),
)
_SCORING = '''"""Score a submission with multimodal-eval: python3 scoring.py INPUT OUTPUT."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "packages"))
try:
    from multimodal_eval.contests.codabench.program import main
    from multimodal_eval.report.build import submission_page
except ImportError as error:
    print(f"The scoring program cannot start: {error}. This is not a mistake in the submission.")
    print("Organisers: the image needs multimodal-eval VERSION, or the program a folder `packages` with it.")
    sys.exit(2)
sys.exit(main(HERE, sys.argv[1:], submission_page))
'''
_COMMAND = "command: python3 /app/program/scoring.py /app/input/ /app/output/\n"


def bundle(data: Path, options: OptionValues) -> tuple[Files, tuple[str, ...]]:
    """The bundle as its files, and notes for the organiser."""
    task = shared_task(data, options)
    image = options["docker_image"] or f"python:{sys.version_info.major}.{sys.version_info.minor}-slim"
    files: dict[str, bytes | Path] = {
        "competition.yaml": _yaml(_competition(task, image, options)),
        "logo.png": logo(),
        "pages/overview.md": _overview(task),
        "pages/submission.md": _submission(task),
        "pages/terms.md": b"Answers are scored automatically. Replace this page by the terms of your task.\n",
        f"reference_data/{FILE}": reference_lines(task.rules, task.samples),
        "public_data/data.jsonl": task.inputs,
        "starting_kit/answers.jsonl": task.example,
        "scoring_program/metadata.yaml": _COMMAND.encode(),
        "scoring_program/scoring.py": _SCORING.replace("VERSION", __version__).encode(),
    }
    files |= {f"scoring_program/{PLUGINS}/{name}": content for name, content in task.plugins.items()}
    files |= {f"scoring_program/{name}": path for name, path in packages_in(options["packages"])}
    notes = list(task.notes)
    if options["docker_image"] is None and options["packages"] is None:
        notes.append(
            f"{image} does not contain multimodal-eval {__version__}. Name an image that does with --set docker_image=…"
            ", or add it with --set packages=FOLDER"
        )
    return files, tuple(notes)


def _competition(task: SharedTask, image: str, options: OptionValues) -> dict[str, Any]:
    """The content of competition.yaml."""
    phase: dict[str, Any] = {
        "index": 0,
        "name": options["phase"],
        "description": f"One answer for each of {len(task.samples):,} samples.",
        "start": options["start"],
        **({} if options["end"] is None else {"end": options["end"]}),
        "max_submissions": options["max_submissions"],
        "max_submissions_per_day": options["max_submissions_per_day"],
        "execution_time_limit": options["time_limit"],
        "accepts_only_result_submissions": True,  # a submission is never run
        "public_data": "public_data",
        "starting_kit": "starting_kit",
        "tasks": [0],
    }
    return {
        "version": 2,
        "title": task.rules.title,
        "description": f"Scored by multimodal-eval {__version__}.",
        "image": "logo.png",
        "terms": "pages/terms.md",
        "registration_auto_approve": False,
        "docker_image": image,
        "make_programs_available": False,
        "make_input_data_available": False,
        "enable_detailed_results": True,
        "show_detailed_results_in_submission_panel": True,
        "show_detailed_results_in_leaderboard": task.rules.details == "scores",
        "pages": [
            {"title": "Overview", "file": "pages/overview.md"},
            {"title": "Submission", "file": "pages/submission.md"},
        ],
        "tasks": [
            {
                "index": 0,
                "name": task.rules.title,
                "description": f"{len(task.samples):,} samples",
                "scoring_program": "scoring_program",
                "reference_data": "reference_data",
            }
        ],
        "phases": [phase],
        "leaderboards": [
            {
                "title": "Results",
                "key": "main",
                "submission_rule": "Force_Best",
                "columns": [_column(index, column) for index, column in enumerate(task.rules.columns)],
            }
        ],
    }


def _column(index: int, column: Column) -> dict[str, Any]:
    return {
        "title": column.title,
        "key": column.key,
        "index": index,
        "sorting": "asc" if column.is_lower_better else "desc",
        "precision": 4,
        "hidden": column.is_hidden,
    }


def _yaml(content: dict[str, Any]) -> bytes:
    import yaml

    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=2**31).encode()


def _overview(task: SharedTask) -> bytes:
    metrics = [column.title for column in task.rules.columns if column.figure == "value" and not column.is_hidden]
    lines = [
        f"# {task.rules.title}",
        "",
        f"Answer {len(task.samples):,} samples. Submissions are ranked by `{metrics[0]}`.",
        "",
        f"Metrics: {', '.join(f'`{name}`' for name in metrics)}.",
    ]
    return ("\n".join(lines) + "\n").encode()


def _submission(task: SharedTask) -> bytes:
    text = f"""# Submission

Send a zip with one file of answers ({", ".join(ACCEPTED)}), with one record per sample:

    {{"id": "{_shown_id(task)}", "generated_answer": "…"}}

- Every id of the task occurs once, and no other id. `answers.jsonl` of the starting kit has all ids.
- An answer is text of at most {task.rules.max_answer:,} characters. An empty answer counts as an answer.
- The file has at most {task.rules.max_mb} MB. Other columns are ignored.

A submission with a mistake is not scored. Its output lists all mistakes with their lines.
"""
    return text.encode()


def _shown_id(task: SharedTask) -> str:
    name = task.samples[0].id
    return name if name.isprintable() and not {*name} & {*'"\\<>`'} else "…"
