"""The sections of the site and the pages in them. A page of docs/ that no section names is an error of the build."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tools.site.pages import DOCS


@dataclass(frozen=True)
class Section:
    """A part of the site: its folder of pages, or groups of pages by name."""

    name: str  # of its index page
    title: str
    about: str
    groups: dict[str, list[str]] = field(default_factory=dict)  # heading -> pages, without .md
    folder: str = ""  # whose pages belong to the section, too


SECTIONS = [
    Section("tutorials", "Tutorials", "Learn by doing: each leads from nothing to a result.", folder="tutorials"),
    Section(
        "notebooks",
        "Notebooks",
        "The same in Jupyter, with tables, plots and galleries.",
        {"": ["notebooks/captions", "notebooks/endpoint", "notebooks/judge_calibration"]},
    ),
    Section(
        "how-to",
        "How-to",
        "One task per page.",
        {
            "Score": [
                *(
                    "install",
                    "scoring",
                    "input",
                    "datasets",
                    "recipes",
                    "reproduce",
                    "harnesses",
                    "coco",
                    "python",
                    "speech",
                ),
                *("composite", "suites", "ci", "adding-a-metric"),
            ],
            "Ask a model": ["generation", "prompts", "until"],
            "Judges and people": [
                *("judges", "pairwise", "ratings", "labelling", "human-labels", "meta-evaluation"),
                *("caption-metrics", "agreement", "classification"),
            ],
            "Contests": [
                *("contests", "clarity", "organise-clarity", "dialogue", "organise-dialogue", "dialogue-generation"),
                *("dialogue-perplexity", "shared-tasks", "leaderboard-site"),
            ],
            "Results": ["report", "view", "export", "publishing"],
            "Training and scale": ["early-stopping", "scale"],
        },
    ),
    Section(
        "explanation",
        "Explanation",
        "Why scores are computed in this way, and when to believe them.",
        {"": ["believe-a-judge", "who-measures-what"]},
        folder="explanation",
    ),
    Section(
        "reference",
        "Reference",
        "Commands, Python names, settings, metrics and rules; what is stored, computed and warned about.",
        {
            "Program": ["commands", "api", "schema", "configuration", "run-folder", "errors", "codes", "lint"],
            "Metrics": ["metrics", "benchmarks", "reproduced", "rules", "metric-names", "statistics"],
            "Texts, images and models": ["tokenizers", "synonyms", "images", "models"],
        },
    ),
    Section(
        "project",
        "Project",
        "How it is built, changed and protected.",
        {"": ["contributing", "changelog", "security", "README"]},
    ),
]


def named(section: Section) -> list[str]:
    """The pages of a section, in their order, without the index of its folder."""
    listed = [page for pages in section.groups.values() for page in pages]
    if section.folder:
        names = sorted(path.stem for path in (DOCS / section.folder).glob("*.md"))
        listed = [f"{section.folder}/{name}" for name in names if name != "index"] + listed
    return listed


def unlisted(pages: list[Path]) -> list[str]:
    """The pages of docs/ that are in no section; those of metrics/ are below a page."""
    known = {name for section in SECTIONS for name in named(section)}
    names = [str(page.relative_to(DOCS).with_suffix("")) for page in pages if page.is_relative_to(DOCS)]
    return [name for name in names if not (name in known or name.startswith("metrics/") or name.endswith("index"))]
