"""The metric cards: docs/metrics/*.md, shipped with the package; and the cards of rules, from their docstrings."""

from __future__ import annotations

import re
from collections.abc import Iterator
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


_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\s+|.", re.DOTALL)
_CODE_OR_FORMULA = re.compile(r"(```.*?```|`[^`\n]*`)|\$\$(.+?)\$\$|\$([^$\n]+)\$", re.DOTALL)
_SYMBOLS = {
    **{"cdot": "·", "ge": "≥", "le": "≤", "ne": "≠", "neq": "≠", "in": "∈", "notin": "∉", "emptyset": "∅", "mid": "|"},
    **{"cap": "∩", "cup": "∪", "dots": "…", "lVert": "‖", "rVert": "‖", "sum": "Σ", "prod": "Π"},
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "sigma": "σ", "psi": "ψ"},
    **{name: name for name in ("ln", "exp", "cos", "max", "min", "arg")},
    **dict.fromkeys(("left", "right", "bigl", "bigr", "Bigl", "Bigr", "Big", "big"), ""),
    **{",": " ", " ": " ", "{": "{", "}": "}", "_": "_", "%": "%"},
    **{"qquad": "\n", "quad": "\n"},
}
_TEXTS = ("mathbf", "mathrm", "text", "texttt")
_WIDE = ("ln", "cos", "exp", "max", "min", "arg", "sum", "prod")  # operators with a space after them
_CLOSE = ("(", "_", "^", "{", "\\left", "\\bigl", "\\Bigl", "\\Big")  # what follows an operator without a space


class _UnknownCommandError(Exception):
    """A command that is not in the tables."""


def with_plain_formulas(markdown: str) -> str:
    """The Markdown with $…$ as code and $$…$$ as code blocks, in plain text; code is left alone."""

    def replaced(match: re.Match[str]) -> str:
        code, display, inline = match.groups()
        if code is not None:
            return match[0]
        if display is not None:
            return f"```\n{_plain(display)}\n```"
        return f"`{_plain(inline)}`"

    return _CODE_OR_FORMULA.sub(replaced, markdown)


def _plain(formula: str) -> str:
    try:
        text = _Formula(formula).text()
    except _UnknownCommandError:
        return formula.strip()
    lines = (re.sub(r"[ \t]+", " ", line).strip().rstrip(",") for line in text.split("\n"))
    return "\n".join(_tidied(line) for line in lines if line)


def _tidied(line: str) -> str:
    """Without spaces inside brackets, and without brackets around a whole side of an equation."""
    line = re.sub(r"([(\[]) +", r"\1", re.sub(r" +([)\],])", r"\1", line))
    return " = ".join(_unwrapped(side) for side in line.split(" = "))


def _unwrapped(side: str) -> str:
    depth = 0
    for index, character in enumerate(side):
        depth += (character == "(") - (character == ")")
        if depth == 0 and index < len(side) - 1:
            return side
    return side[1:-1] if side.startswith("(") and " / " in side else side


class _Formula:
    def __init__(self, source: str) -> None:
        self._tokens: list[str] = _TOKEN.findall(source.strip())
        self._next = 0

    def text(self) -> str:
        return self._until(())

    def _until(self, ends: tuple[str, ...]) -> str:
        """The text up to one of these tokens, which is consumed."""
        pieces = []
        while self._next < len(self._tokens):
            token = self._take()
            if token in ends:
                break
            pieces.append(self._piece(token))
        return "".join(pieces)

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1]

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _argument(self) -> str:
        while self._peek().isspace():
            self._take()
        token = self._take()
        return self._until(("}",)).strip() if token == "{" else self._piece(token)

    def _piece(self, token: str) -> str:
        if token.isspace():
            return " "
        if token == "{":
            return self._until(("}",))
        if token in ("_", "^"):
            return self._script(token)
        if not token.startswith("\\"):
            return token
        return self._command(token[1:])

    def _command(self, name: str) -> str:
        if name in _TEXTS:
            return self._words()
        if name in ("frac", "tfrac"):
            return _fraction(self._argument(), self._argument())
        if name == "begin":
            self._argument()
            return self._cases()
        if name in ("sum", "prod"):
            return f"{_SYMBOLS[name]}{self._limits()} "
        if name in _SYMBOLS:
            space = " " if name in _WIDE and self._peek() not in _CLOSE else ""
            return _SYMBOLS[name] + space
        raise _UnknownCommandError(name)

    def _words(self) -> str:
        """The argument of \\text, with its spaces."""
        self._take()
        return self._until(("}",))

    def _script(self, mark: str) -> str:
        argument = self._argument()
        if len(argument) == 1 or (argument.isalnum() and mark == "_"):
            return mark + argument
        return f"_{{{argument}}}" if mark == "_" else f"^({argument})"

    def _limits(self) -> str:
        """The limits of a sum or a product: _{j=1..m}."""
        low = high = ""
        while self._peek() in ("_", "^"):
            mark, argument = self._take(), self._argument()
            low, high = (argument, high) if mark == "_" else (low, argument)
        if not high:
            return f"_{low}" if len(low) == 1 else f"_{{{low}}}" if low else ""
        return f"_{{{low}..{high}}}"

    def _cases(self) -> str:
        """A case distinction on one line: { 1 if a; 0 if b }."""
        body = self._source_until("\\end")
        self._argument()
        rows = (row.split("&") for row in body.split("\\\\"))
        return f"{{ {'; '.join(_case(*row) for row in rows)} }}"

    def _source_until(self, end: str) -> str:
        start = self._next
        while self._take() != end:
            pass
        return "".join(self._tokens[start : self._next - 1])


def _case(value: str, condition: str = "") -> str:
    shown, when = (_Formula(part).text().strip() for part in (value, condition))
    return f"{shown} else" if when == "else" else f"{shown} if {when}"


def _fraction(above: str, below: str) -> str:
    above, below = above.strip(), below.strip()
    if all(re.fullmatch(r"\w+|[αβγδ]", side) for side in (above, below)):
        return f"{above}/{below}"
    return f"({_bracketed(above)} / {_bracketed(below)})"


def _bracketed(side: str) -> str:
    """In brackets, if it is a sum, a difference or a product."""
    return f"({side})" if {" ", "+", "-"} & set(_outside_brackets(side)) else side


def _outside_brackets(side: str) -> Iterator[str]:
    depth = 0
    for character in side:
        depth += character in "({["
        if depth == 0:
            yield character
        depth -= character in ")}]"
