"""The metric cards: docs/metrics/*.md, shipped with the package; and the cards of rules, from their docstrings."""

from __future__ import annotations

from pathlib import Path

from multimodal_eval.core.errors import UnknownNameError
from multimodal_eval.core.metric import declared_options
from multimodal_eval.core.rules import Rule, families, rules_named, rules_of
from multimodal_eval.evaluation.metrics_registry import list_available, resolve

JUDGE = "judge"  # the card of all judges
_PACKAGE = Path(__file__).resolve().parent.parent
# Installed with the package; an editable install reads those of the repository.
_FOLDERS = (_PACKAGE / "cards", _PACKAGE.parent.parent / "docs" / "metrics")


def options_text(name: str) -> str:
    """The options of a metric as a Markdown table, built from their declarations."""
    declared = declared_options(resolve(name))
    if not declared:
        return "## Options\n\nThis metric has no options."
    rows = [
        f"| `{option}` | {_cell(_in_yaml(about.default))} | {_cell(about.allowed)} | {_cell(about.help)} |"
        for option, about in declared.items()
    ]
    return "\n".join(["## Options", "", "| option | default | allowed | what it does |", "|---|---|---|---|", *rows])


def _in_yaml(value: object) -> str:
    """A default as written in a configuration file."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def card_text(name: str) -> str:
    """The card of a metric, or of judges (`JUDGE`); for a metric from a plug-in, its docstring."""
    metric = None if name == JUDGE else resolve(name)
    for folder in _FOLDERS:
        file = folder / f"{name}.md"
        if file.is_file():
            return file.read_text(encoding="utf-8")
    return f"# {name}\n\n{(metric and metric.__doc__) or 'This metric has no documentation.'}"


def rule_card(name: str) -> str:
    """The card of the rules with that name: what each does, its origin, and the metrics that take it."""
    rules = list(rules_named(name))
    if not rules:
        raise UnknownNameError("rule", name, sorted({known for family in families() for known in rules_of(family)}))
    return "\n\n".join([f"# {name}", *(_rule_section(rule) for rule in rules)])


def _rule_section(rule: Rule) -> str:
    users = [f"`{metric}` (`{option}`)" for metric, option in options_with(rule.family)]
    lines = [f"## {rule.family}", rule.about, f"Origin: {rule.origin}"]
    if users:
        lines.append(f"Metrics with this rule: {', '.join(users)}. Choose it with `--option METRIC.rule={rule.name}`.")
    others = [other for other in rules_of(rule.family) if other != rule.name]
    if others:
        lines.append(f"Other rules of this family: {', '.join(f'`{other}`' for other in others)}.")
    return "\n\n".join(lines)


def options_with(family: str) -> list[tuple[str, str]]:
    """The metrics, with the option, that take rules of a family."""
    return [
        (name, option)
        for name in list_available()
        for option, about in declared_options(resolve(name)).items()
        if about.rules == family
    ]
