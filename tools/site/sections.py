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
                "install",
                "demo",
                "scoring",
                "input",
                "datasets",
                "configuration",
                "python",
                "vqa",
                "speech",
                "images",
            ],
            "Ask a model": ["generation", "prompts", "until"],
            "Judges and people": [
                *("judges", "pairwise", "ratings", "labelling", "human-labels", "meta-evaluation"),
                *("agreement", "classification"),
            ],
            "Contests": [
                *("contests", "clarity", "organise-clarity", "dialogue", "organise-dialogue", "dialogue-generation"),
                *("dialogue-perplexity", "shared-tasks", "leaderboard-site"),
            ],
            "Results": ["report", "view", "export", "publishing", "screenshots"],
            "Training and scale": ["early-stopping", "scale", "models", "adding-a-metric"],
        },
    ),
    Section(
        "explanation",
        "Explanation",
        "Why scores are computed in this way, and when to believe them.",
        {
            "Statistics and judges": ["statistics", "believe-a-judge", "judge-findings"],
            "Text": ["tokenizers", "synonyms", "meteor-1.5"],
            "Other programs": ["who-measures-what", "pages-compared"],
            "Design": ["decisions"],
        },
        folder="explanation",
    ),
    Section(
        "reference",
        "Reference",
        "Generated from the code: commands, Python names, settings; and what is stored.",
        {
            "Program": ["commands", "api", "schema", "run-folder"],
            "Metrics": ["metrics", "rules", "metric-names"],
        },
    ),
    Section("harness", "From your harness", "Your logs and names in other programs.", {"": ["harnesses", "coco"]}),
    Section("problems", "Errors", "Every code that the program prints.", {"": ["errors", "codes", "lint"]}),
    Section("cookbook", "Cookbook", "Short recipes to copy.", folder="cookbook"),
    Section(
        "project",
        "Project",
        "How it is built, changed and protected.",
        {"": ["contributing", "releasing", "platforms", "changelog", "security", "README"]},
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
    """The pages of docs/ that are in no section; those of metrics/ and decisions/ are below a page."""
    known = {name for section in SECTIONS for name in named(section)}
    names = [str(page.relative_to(DOCS).with_suffix("")) for page in pages if page.is_relative_to(DOCS)]
    folders = ("metrics/", "decisions/")
    return [name for name in names if name not in known and not name.startswith(folders) and not name.endswith("index")]
