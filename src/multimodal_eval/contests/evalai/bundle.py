"""The archive of a challenge on EvalAI: challenge_config.yaml, evaluation script, annotations, templates.

Reference:
    EvalAI documentation, "Challenge configuration" and "Writing Evaluation Script" (evalai.readthedocs.io).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from multimodal_eval import __version__
from multimodal_eval.contests.archives import Files, logo, packages_in, zipped
from multimodal_eval.contests.evalai.script import SPLIT
from multimodal_eval.contests.shared_task.judging import FILE, reference_lines
from multimodal_eval.contests.shared_task.submitted_answers import ACCEPTED
from multimodal_eval.contests.shared_task.task import OPTIONS as TASK_OPTIONS
from multimodal_eval.contests.shared_task.task import PLUGINS, SharedTask, shared_task
from multimodal_eval.core.options import Option, Options, OptionValues

OPTIONS = Options(
    TASK_OPTIONS,
    packages=Option(
        str | None, None, help="a folder with the installed packages, for a worker without multimodal-eval"
    ),
)
_END = "2099-12-31 23:59:59"  # EvalAI needs one
_SCRIPT = '''"""Score a submission with multimodal-eval."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
if (HERE / "packages").is_dir():
    sys.path.insert(0, str(HERE / "packages"))

from multimodal_eval.contests.evalai import script


def evaluate(test_annotation_file, user_submission_file, phase_codename, **kwargs):
    return script.evaluate(test_annotation_file, user_submission_file, phase_codename, program=HERE, **kwargs)
'''


def bundle(data: Path, options: OptionValues) -> tuple[Files, tuple[str, ...]]:
    """The archive as its files, and notes for the organiser."""
    task = shared_task(data, options)
    script: dict[str, bytes | Path] = {
        "__init__.py": b"from .main import evaluate\n",
        "main.py": _SCRIPT.encode(),
        **{f"{PLUGINS}/{name}": content for name, content in task.plugins.items()},
        **dict(packages_in(options["packages"])),
    }
    files: dict[str, bytes | Path] = {
        "challenge_config.yaml": _yaml(_challenge(task, options)),
        "logo.png": logo(),
        "evaluation_script.zip": zipped(script),
        f"annotations/{FILE}": reference_lines(task.rules, task.samples),
        **{f"templates/{name}.html": text.encode() for name, text in _templates(task).items()},
        "public_data/data.jsonl": task.inputs,
        "public_data/answers.jsonl": task.example,
    }
    notes = list(task.notes)
    if options["packages"] is None:
        notes.append(
            f"the worker needs multimodal-eval {__version__}. Install it there, or add it with --set packages=FOLDER"
        )
    if options["details"] == "samples":
        notes.append("EvalAI shows no detailed results: `details` has no effect")
    return files, tuple(notes)


def _challenge(task: SharedTask, options: OptionValues) -> dict[str, Any]:
    """The content of challenge_config.yaml."""
    columns = [column for column in task.rules.columns if not column.is_hidden]
    first, end = columns[0], options["end"] or _END
    return {
        "title": task.rules.title,
        "short_description": f"Scored by multimodal-eval {__version__}.",
        "description": "templates/description.html",
        "evaluation_details": "templates/evaluation_details.html",
        "terms_and_conditions": "templates/terms_and_conditions.html",
        "image": "logo.png",
        "submission_guidelines": "templates/submission_guidelines.html",
        "evaluation_script": "evaluation_script.zip",
        "remote_evaluation": False,
        "is_docker_based": False,
        "start_date": options["start"],
        "end_date": end,
        "published": False,
        "leaderboard": [
            {
                "id": 1,
                "schema": {"labels": [column.title for column in columns], "default_order_by": first.title},
            }
        ],
        "challenge_phases": [
            {
                "id": 1,
                "name": options["phase"],
                "description": "templates/phase.html",
                "leaderboard_public": True,
                "is_public": True,
                "is_submission_public": False,
                "start_date": options["start"],
                "end_date": end,
                "test_annotation_file": f"annotations/{FILE}",
                "codename": "test",
                "max_submissions_per_day": options["max_submissions_per_day"],
                "max_submissions_per_month": options["max_submissions"],
                "max_submissions": options["max_submissions"],
                "is_restricted_to_select_one_submission": False,
                "is_partial_submission_evaluation_enabled": False,
                "allowed_submission_file_types": ", ".join((*ACCEPTED, ".zip")),
            }
        ],
        "dataset_splits": [{"id": 1, "name": "Test", "codename": SPLIT}],
        "challenge_phase_splits": [
            {
                "challenge_phase_id": 1,
                "leaderboard_id": 1,
                "dataset_split_id": 1,
                "visibility": 3,
                "leaderboard_decimal_precision": 4,
                "is_leaderboard_order_descending": not first.is_lower_better,
            }
        ],
    }


def _yaml(content: dict[str, Any]) -> bytes:
    import yaml

    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=2**31).encode()


def _templates(task: SharedTask) -> dict[str, str]:
    from html import escape

    metrics = [column.title for column in task.rules.columns if column.figure == "value" and not column.is_hidden]
    return {
        "description": f"<p>{escape(task.rules.title)}: answer {len(task.samples):,} samples.</p>\n",
        "evaluation_details": f"<p>Metrics: {escape(', '.join(metrics))}. The first one ranks.</p>\n",
        "terms_and_conditions": "<p>Replace this page by the terms of your task.</p>\n",
        "submission_guidelines": (
            f"<p>Send one file of answers ({', '.join(ACCEPTED)}), or a zip with one, with one record per sample: "
            "<code>{&quot;id&quot;: &quot;…&quot;, &quot;generated_answer&quot;: &quot;…&quot;}</code>. Every id of "
            f"the task occurs once. An answer has at most {task.rules.max_answer:,} characters, and the file at most "
            f"{task.rules.max_mb} MB.</p>\n"
        ),
        "phase": f"<p>{len(task.samples):,} samples.</p>\n",
    }
