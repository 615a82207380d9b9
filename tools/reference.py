"""Write the pages of the reference from the code: python -m tools.reference

docs/api.md lists the public names; the documentation site has a page per module, with signatures and docstrings.
A module is public if it has `__all__`; the names in it are the public names. Metrics are shown under their published
path, `multimodal_eval.evaluation.NAME`.
"""

from __future__ import annotations

import ast
import inspect
import pprint
import re
import textwrap
from collections.abc import Iterable, Iterator
from copy import copy
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

from multimodal_eval.cli.layers import COMMANDS_RENAMED, MOVED, RENAMED, REPLACED, flag_of, show_everything
from multimodal_eval.cli.main import cli
from multimodal_eval.core.metric_names import ALIASES, JUDGES, NOT_HERE
from tools.codes import codes_page

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
METRICS = "multimodal_eval.evaluation.metrics."
PAGES = {name: ROOT / "docs" / f"{name}.md" for name in ("api", "commands", "codes", "metric-names")}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
API_HEAD = """# Python API

<!-- Written by `python -m tools.reference`. -->

Every name on this page is public: it stays, or a release note says what replaces it. Everything else is private, even
if Python can import it. Most programs need only the first module; the others have the parts it is made of. The
documentation site has a page per module, with signatures and docstrings; `help(NAME)` prints the same.

"""
COMMANDS_HEAD = """# Commands

<!-- Written by `python -m tools.reference`. -->

Every command with all its options, as `mmeval COMMAND --help-all` prints them. Older names, which work until 0.3, are
[at the end](#older-names).

"""
NAMES_HEAD = """# Names of metrics in other programs

<!-- Written by `python -m tools.reference`. -->

`mmeval score --metrics NAME` takes the names of `mmeval ls metrics`. For another program's name, the error message says
what to write instead. Names are compared without case, spaces, hyphens and underscores. They are suggested and never
replaced silently, since several programs use one name for different formulas.
"""


@cache
def public_modules() -> list[str]:
    """The names of all modules with `__all__`; the package itself is the first."""
    names = []
    for file in SOURCE.rglob("*.py"):
        assigned = (node.targets[0] for node in ast.parse(file.read_text()).body if isinstance(node, ast.Assign))
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in assigned):
            parts = file.relative_to(SOURCE).with_suffix("").parts
            names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return sorted(published(name) for name in names)


def published(module: str) -> str:
    return module.replace(METRICS, "multimodal_eval.evaluation.")


def api_page() -> str:
    modules = [import_module(name) for name in public_modules()]
    return API_HEAD + "".join(
        f"- `{published(module.__name__)}`: {summary(module)}{names(module)}\n" for module in modules
    )


def names(module: ModuleType) -> str:
    public = ", ".join(f"`{name}`" for name in module.__all__ if not name.startswith("__"))
    return f" {public}" if public else ""


def summary(value: object) -> str:
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")


def module_section(module: ModuleType) -> str:
    name = published(module.__name__)
    head = f"\n## {name}\n\n{inspect.getdoc(module)}\n"
    return head + "".join(entry(module, public) for public in module.__all__ if not public.startswith("__"))


def entry(module: ModuleType, name: str) -> str:
    value = inspect.unwrap(getattr(module, name))  # a cached function is a function
    if inspect.isclass(value):
        return f"\n### class `{name}`\n" + class_text(value)
    if inspect.isfunction(value):
        return f"\n### `{name}`\n\n```{{code-block}} python\n{signature(value)}\n```\n\n{inspect.getdoc(value)}\n"
    if type(value).__module__.startswith("multimodal_eval"):
        return f"\n### `{name}`\n\n{inspect.getdoc(value)}\n"
    return f"\n### `{name}`\n\n```{{code-block}} python\n{name} = {shown(value)}\n```\n"


def shown(value: object) -> str:
    text = str(value) if type(value).__module__ in ("typing", "collections.abc") else pprint.pformat(value, width=96)
    text = re.sub(r"<class '(?:\w+\.)*(\w+)'>", r"\1", text)
    return text.replace("multimodal_eval.evaluation.tasks_config.", "")


def class_text(value: type) -> str:
    text = f"\n{inspect.getdoc(value)}\n"
    node = definition(value)
    assert isinstance(node, ast.ClassDef)
    if bases := [ast.unparse(base) for base in node.bases if ast.unparse(base) not in ("Protocol", "msgspec.Struct")]:
        text += f"\nBases: {', '.join(f'`{base}`' for base in bases)}\n"
    fields = [line for statement in node.body for line in field_lines(statement)]
    methods = [line for statement in node.body for line in method_lines(statement)]
    for lines in (fields, methods):
        if lines:
            text += "\n" + "".join(lines)
    return text


def field_lines(statement: ast.stmt) -> Iterator[str]:
    if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
        return
    if not statement.target.id.startswith("_"):
        default = f" = {ast.unparse(statement.value)}" if statement.value else ""
        yield f"- `{statement.target.id}: {ast.unparse(statement.annotation)}{default}`\n"


def method_lines(statement: ast.stmt) -> Iterator[str]:
    """A line for each public method and property, and for `__call__` and `__init__` if they are documented."""
    if isinstance(statement, FUNCTIONS):
        text = (ast.get_docstring(statement) or "").partition("\n\n")[0].replace("\n", " ")
        if text and (not statement.name.startswith("_") or statement.name in ("__init__", "__call__")):
            is_property = any(ast.unparse(decorator).endswith("property") for decorator in statement.decorator_list)
            shown = statement.name if is_property else header(statement).removeprefix("def ")
            yield f"- `{shown}`: {text}\n"


def signature(function: object) -> str:
    node = definition(function)
    assert isinstance(node, FUNCTIONS)
    line = f"{header(node)}: ..."
    if len(line) <= 100:
        return line
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return (
        f"def {node.name}(\n" + "".join(f"    {argument},\n" for argument in arguments(node.args)) + f"){returned}: ..."
    )


def arguments(node: ast.arguments) -> Iterator[str]:
    """Each argument as it is written, with `*` and `/`."""
    plain = [*node.posonlyargs, *node.args]
    defaults: list[ast.expr | None] = [*[None] * (len(plain) - len(node.defaults)), *node.defaults]
    for place, (argument, default) in enumerate(zip(plain, defaults, strict=True), 1):
        yield with_default(argument, default)
        if place == len(node.posonlyargs):
            yield "/"
    if node.vararg or node.kwonlyargs:
        yield f"*{ast.unparse(node.vararg)}" if node.vararg else "*"
    for argument, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
        yield with_default(argument, default)
    if node.kwarg:
        yield f"**{ast.unparse(node.kwarg)}"


def with_default(argument: ast.arg, default: ast.expr | None) -> str:
    equals = " = " if argument.annotation else "="
    return ast.unparse(argument) + (f"{equals}{ast.unparse(default)}" if default else "")


def header(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returned = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    word = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    return f"{word} {node.name}({', '.join(arguments(node.args))}){returned}"


def definition(value: object) -> ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef:
    """The statement that defines a class or function: it has the annotations as they were written."""
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(value)))  # type: ignore[arg-type]
    (node,) = ast.parse(source).body
    assert isinstance(node, (ast.ClassDef, *FUNCTIONS))
    return node


def commands(group: click.Group = cli) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command with its full name; a group is one too."""
    settings = {**group.context_settings, "max_content_width": 100, "terminal_width": 100}
    context = click.Context(group, info_name="mmeval", **settings)
    show_everything(context)
    yield "mmeval", group, context
    for name, command in group.commands.items():
        inner = click.Context(command, info_name=name, parent=context)
        yield f"mmeval {name}", command, inner
        if isinstance(command, click.Group):
            for below, leaf in command.commands.items():
                yield f"mmeval {name} {below}", leaf, click.Context(leaf, info_name=below, parent=inner)


def help_of(command: click.Command, context: click.Context) -> str:
    """What a command prints. click keeps the help option of its first context, which may be another one."""
    fresh = copy(command)
    fresh._help_option = None
    return fresh.get_help(context)


def commands_page() -> str:
    sections = [f"## {name}\n\n```\n{help_of(command, context)}\n```\n" for name, command, context in commands()]
    return COMMANDS_HEAD + "\n".join([*sections, older_names()])


def older_names() -> str:
    """What is accepted with a warning, and what replaces it."""
    rows = [(f"mmeval {name}", f"mmeval {' '.join(words)}") for name, words in COMMANDS_RENAMED.items()]
    rows += [*RENAMED.items(), *REPLACED.items()]
    keys: dict[tuple[str, str], list[str]] = {}
    for name, command, _ in commands():
        known = {flag_of(parameter) for parameter in command.params}
        for flag, key in MOVED.get(name.removeprefix("mmeval "), {}).items():
            if flag in known:
                keys.setdefault((flag, key), []).append(f"`{name}`")
    lines = [f"| `{older}` | `{newer}` |" for older, newer in rows]
    settings = [f"| `{flag}` | `{key}` | {', '.join(paths)} |" for (flag, key), paths in keys.items()]
    return "\n".join(
        [
            "## Older names\n",
            "They work until 0.3, with a warning.\n",
            "| older | now |\n|---|---|",
            *lines,
            "\nThese options are settings of the [configuration](configuration.md) now:\n",
            "| option | setting | of |\n|---|---|---|",
            *settings,
            "",
        ]
    )


def metric_names_page() -> str:
    same = ((name, "; ".join(map("`{0[0]}`: {0[1]}".format, here.items()))) for name, here in ALIASES.items())
    asking = ((name, f"`{judge}`: {about}") for name, (judge, about) in JUDGES.items())
    nearest = ((name, ", ".join(map("`{}`".format, near)) or "none", why) for name, (near, why) in NOT_HERE.items())
    return (
        NAMES_HEAD
        + table("Metrics under another name", ("name", "here"), same)
        + table("Metrics that ask a model", ("name", "here"), asking)
        + table("Metrics that are not here", ("name", "the nearest here", "why"), nearest)
    )


def table(heading: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (f"| {' | '.join(row)} |\n" for row in (columns, *rows))
    return f"\n## {heading}\n\n{next(lines)}|{'---|' * len(columns)}\n{''.join(lines)}"


@cache
def pages() -> dict[Path, str]:
    texts = {
        "api": api_page(),
        "commands": commands_page(),
        "codes": codes_page(),
        "metric-names": metric_names_page(),
    }
    return {PAGES[name]: text for name, text in texts.items()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
