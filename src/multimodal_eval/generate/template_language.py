"""The language of prompt templates: Jinja over the fields of a sample, without access to anything else.

A template may come from somebody else, also inside a run folder. So it is compiled by Jinja's sandbox and uses only
a part of the language: output, `if`, `for`, `set`, comparisons, arithmetic on small numbers, and the filters below. It
has no attributes of Python objects, no function but `range`, no macros, and no other files. Every operation uses up a
budget by the length of what it works on, so that no template runs for long or fills the memory. A few operations, such
as the search in a text of repetitions, take longer than their length says: for these there is a limit of time, which
is checked between operations.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from math import inf
from time import thread_time
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, TemplateSyntaxError, nodes
from jinja2.runtime import LoopContext, Undefined
from jinja2.sandbox import SandboxedEnvironment
from jinja2.visitor import NodeTransformer

from multimodal_eval.generate.template import FENCED, EmptyFieldError, Slot

__all__ = ["PromptLanguage", "TooLongError", "TooSlowError"]

LONGEST_OUTPUT = 1_000_000  # characters
BUDGET = 10_000_000  # characters and items that operations may read and produce while a template is rendered
LOOP_COST = 100  # of one step of a loop, and more if its body has more nodes
SECONDS = 10.0  # of this thread's processor time, for one sample
LARGEST_NUMBER = 10**15
_LOOP_FIELDS = frozenset(
    ("index", "index0", "revindex", "revindex0", "first", "last", "length", "previtem", "nextitem")
)
# Tests that look only at the kind of a value.
_FREE_TESTS = frozenset(
    "boolean callable defined false float integer iterable mapping none number sameas sequence string true "
    "undefined".split()
)
# Filters that do not look into the items of a list.
_SHALLOW = frozenset(("default", "first", "items", "last", "length", "reverse"))
_STATEMENTS = (nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign)
_EXPRESSIONS = (
    *(nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Dict, nodes.Pair, nodes.CondExpr, nodes.Filter),
    *(nodes.Test, nodes.Call, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Concat, nodes.Compare, nodes.Operand),
    *(nodes.And, nodes.Or, nodes.Not, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod),
    *(nodes.Neg, nodes.Pos),
)


class TooLongError(TemplateError):
    """A template that loops too long, or produces too much text."""


class TooSlowError(TooLongError):
    """A template that takes too much time."""


class _RefusedError(TemplateError):
    """An operation that templates do not have."""


class _MissingKey(Undefined):
    """A key that a mapping does not have: false in `if` and `or`, because not every sample has all keys."""

    __slots__ = ()

    def __str__(self) -> str:
        return self._fail_with_undefined_error()

    def __iter__(self) -> Iterator[Any]:
        return self._fail_with_undefined_error()

    def __len__(self) -> int:
        return self._fail_with_undefined_error()


class PromptLanguage(SandboxedEnvironment):
    """Compiles and renders templates. It keeps the budget of the template that it renders: use it in one thread."""

    intercepted_binops = frozenset(("+", "-", "*", "/", "//", "%"))

    def __init__(self) -> None:
        super().__init__(
            autoescape=False,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            optimized=False,  # the optimizer would evaluate constants without a budget
            finalize=_written,
        )
        self.left, self.deadline = BUDGET, inf
        self.filters = {name: self._charged(function, name in _SHALLOW) for name, function in FILTERS.items()}
        self.filters |= {"join": self._joined, "replace": self._replaced, "list": self._listed, "sort": self._sorted}
        self.filters |= {"_concat": self._concatenated, "_each": self._each}
        self.filters |= {"_weighed": self._weighed, "_sliced": self._sliced}
        self.globals = {"range": _range}

    def written(self, template: Template, fields: dict[str, Any]) -> str:
        """What a template writes for the fields of a sample."""
        self.left, self.deadline = BUDGET, thread_time() + SECONDS
        size, pieces = 0, []
        names = {**self.globals, **fields}
        for piece in template.root_render_func(template.new_context(names, shared=True)):  # looks up no other globals
            size += len(piece)
            if size > LONGEST_OUTPUT:
                raise TooLongError(f"it writes more than {LONGEST_OUTPUT:,} characters")
            pieces.append(piece)
        return "".join(pieces)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree = super()._parse(source, name, filename)
        _refuse_other_nodes(tree)
        transformed: nodes.Template = _Budgeted().visit(tree)
        return transformed

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A key of a mapping, or a field of `loop`; never an attribute of a Python object."""
        if isinstance(obj, Mapping):
            return obj[attribute] if attribute in obj else _MissingKey(obj=obj, name=attribute)
        if isinstance(obj, LoopContext) and attribute in _LOOP_FIELDS:
            return getattr(obj, attribute)
        return self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """A key of a mapping, or an item of a list or a text."""
        self.spend(_weight(argument))
        try:
            if isinstance(obj, Mapping | list | tuple | str):
                return obj[argument]
        except (LookupError, TypeError):
            if isinstance(obj, Mapping):
                return _MissingKey(obj=obj, name=argument)
        return self.undefined(obj=obj, name=argument)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Arithmetic on numbers, and `+` on texts."""
        if operator == "+" and isinstance(left, str) and isinstance(right, str):
            return self._concatenated((left, right))
        for value in (left, right):
            if isinstance(value, Undefined):
                str(value)  # raises, and names the variable
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise _RefusedError(f"`{operator}` needs numbers. Got {_kind(value)}")
        result = _ARITHMETIC[operator](left, right)
        if abs(result) > LARGEST_NUMBER:
            raise TooLongError(f"a number is larger than {LARGEST_NUMBER:,}")
        return result

    def spend(self, cost: int) -> None:
        """Use up a part of the budget."""
        self.left -= cost
        if self.left < 0:
            raise TooLongError(f"it needs more than {BUDGET // LOOP_COST:,} steps, or {BUDGET:,} characters")
        if thread_time() > self.deadline:
            raise TooSlowError(f"it takes more than {SECONDS:g} seconds. Simplify its loops and searches in long texts")

    def _charged(self, function: Callable[..., Any], is_shallow: bool) -> Callable[..., Any]:
        def filtered(value: Any, *args: Any) -> Any:
            self.spend(sum(map(len, filter(_is_text, args))))
            if isinstance(value, Iterable) and not isinstance(value, str | Undefined | Mapping):
                value = self._listed(value)
            if not is_shallow:
                self._weighed(value)
            elif isinstance(value, str):
                self.spend(len(value))
            result = function(value, *args)
            self.spend(1 + (len(result) if isinstance(result, str | list) else 0))
            return result

        return filtered

    def _weighed(self, value: Any) -> Any:
        """The value, paid for."""
        self.spend(_weight(value))
        return value

    def _sliced(self, value: Any, *bounds: int | None) -> Any:
        result = value[slice(*bounds)]
        self.spend(1 + len(result))
        return result

    def _each(self, items: Iterable[Any], cost: int) -> Iterator[Any]:
        for item in items:
            self.spend(cost)
            yield item

    def _listed(self, value: Any) -> list[Any]:
        items = list(islice(value, BUDGET))
        self.spend(len(items))
        return items

    def _sorted(self, value: Any) -> list[Any]:
        items = self._listed(value)
        self.spend(_weight(items) * len(items).bit_length())  # as many comparisons of each item
        return sorted(items)

    def _concatenated(self, values: Iterable[Any]) -> str:
        texts = [_text(value) for value in values]
        self.spend(sum(map(len, texts)))
        return "".join(texts)

    def _joined(self, value: Iterable[Any], separator: str = "") -> str:
        texts = [_text(item) for item in self._listed(value)]
        self.spend(sum(map(len, texts)) + len(separator) * len(texts))
        return separator.join(texts)

    def _replaced(self, value: Any, old: str, new: str) -> str:
        text = _text(value)
        self.spend(len(text) + len(old) + text.count(old) * len(new))
        return text.replace(old, new)


class _Budgeted(NodeTransformer):
    """Sends loops and all operations whose cost depends on lengths through filters that count."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802 - the name that Jinja calls
        cost = nodes.Const(max(LOOP_COST, sum(1 for _ in node.find_all(nodes.Node))), lineno=node.lineno)
        self.generic_visit(node)
        node.iter = _filtered(node.iter, "_each", cost)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802
        self.generic_visit(node)
        return _filtered(nodes.Tuple(node.nodes, "load", lineno=node.lineno), "_concat")

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:  # noqa: N802
        self.generic_visit(node)
        node.expr = _filtered(node.expr, "_weighed")
        for operand in node.ops:
            operand.expr = _filtered(operand.expr, "_weighed")
        return node

    def visit_Test(self, node: nodes.Test) -> nodes.Test:  # noqa: N802
        self.generic_visit(node)
        if node.name not in _FREE_TESTS:
            node.node = _filtered(node.node, "_weighed")
            node.args = [_filtered(argument, "_weighed") for argument in node.args]
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        if not isinstance(node.arg, nodes.Slice):
            return node
        bounds = (node.arg.start, node.arg.stop, node.arg.step)
        nothing = nodes.Const(None, lineno=node.lineno)
        return _filtered(node.node, "_sliced", *(nothing if bound is None else bound for bound in bounds))


def _filtered(node: nodes.Node, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)


def _refuse_other_nodes(node: nodes.Node) -> None:
    if not isinstance(node, (*_STATEMENTS, *_EXPRESSIONS)):
        raise _refused(f"templates do not have `{type(node).__name__.lower()}`", node)
    match node:
        case nodes.For(recursive=True):
            raise _refused("templates do not have recursive loops", node)
        case nodes.Call() if not (isinstance(node.node, nodes.Name) and node.node.name == "range"):
            raise _refused("templates call no functions but `range`; use a filter", node)
        case nodes.Filter(name=name) if name not in FILTERS and name not in ("join", "replace", "list"):
            known = ", ".join(sorted([*FILTERS, "join", "replace", "list"]))
            raise _refused(f"no filter is named {name!r}. Known: {known}", node)
        case nodes.List() | nodes.Dict() if not all(map(_is_constant, node.items)):
            raise _refused("a list or a mapping in a template may contain only constants", node)
        case nodes.Tuple(ctx="load") if not all(map(_is_constant, node.items)):
            raise _refused("a list in a template may contain only constants", node)
        case nodes.Name(name=name) if name.startswith("_") or name == "self":
            raise _refused(f"the name `{name}` is not available", node)
        case nodes.Getattr(attr=name) if name.startswith("_"):
            raise _refused(f"names that start with `_` are not available: {name}", node)
        case _:
            pass
    for child in node.iter_child_nodes():
        _refuse_other_nodes(child)


def _is_constant(node: nodes.Node) -> bool:
    if isinstance(node, nodes.Pair):
        return isinstance(node.key, nodes.Const) and isinstance(node.value, nodes.Const)
    return isinstance(node, nodes.Const)


def _refused(message: str, node: nodes.Node) -> TemplateSyntaxError:
    return TemplateSyntaxError(message, node.lineno or 1)


def _written(value: Any) -> Any:
    """A value that a template may write: text, a number or media. An empty field is an error, not the text `None`."""
    if isinstance(value, str | int | float | Slot):
        return value
    if isinstance(value, Undefined):
        return str(value)  # raises, and names the variable; nothing for `if` without `else`
    if value is None:
        raise EmptyFieldError("it writes a field that is empty")
    raise _RefusedError(f"it writes {_kind(value)}. Use a loop, or the filters `join` or `tojson`")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Slot):
        what = "a fenced text is written as it is" if value.kind == FENCED else f"`{value.kind}` is media, not text"
        raise _RefusedError(what)
    return str(_written(value))


def _weight(value: Any) -> int:
    """The characters and items of a value, with all that is in it."""
    weight, inside = 0, [value]
    while inside and weight <= BUDGET:
        item = inside.pop()
        weight += 1
        if isinstance(item, str | range):
            weight += len(item)
        elif isinstance(item, Mapping):
            inside += item.keys()
            inside += item.values()
        elif isinstance(item, list | tuple):
            inside += item
    return weight


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _kind(value: object) -> str:
    if isinstance(value, Slot):
        return "a fenced text" if value.kind == FENCED else value.kind
    kinds = {dict: "a mapping", list: "a list", tuple: "a list", str: "a text", type(None): "an empty field"}
    return kinds.get(type(value), f"a value of type {type(value).__name__}")


def _range(*bounds: int) -> range:
    numbers = range(*bounds)
    if len(numbers) * LOOP_COST > BUDGET:
        raise TooLongError(f"`range` has more than {BUDGET // LOOP_COST:,} numbers")
    return numbers


def _default(value: Any, other: Any = "") -> Any:
    """The value, or the other one if the field is missing or empty."""
    return other if isinstance(value, Undefined) or value is None else value


def _json(value: Any) -> str:
    if isinstance(value, Slot | Undefined):
        _text(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def _integer(value: Any) -> int:
    number = int(value) if isinstance(value, int | float) else int(_text(value)[:20])
    return max(-LARGEST_NUMBER, min(LARGEST_NUMBER, number))


def _truncate(value: Any, length: int) -> str:
    """The first characters of a text."""
    return _text(value)[: max(0, length)]


def _items(value: Any) -> list[tuple[Any, Any]]:
    if value is None:
        raise EmptyFieldError("it needs `choices`, or another mapping, which is empty")
    if not isinstance(value, Mapping):
        raise _RefusedError(f"`items` needs a mapping. Got {_kind(value)}")
    return list(value.items())


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
}

# Filters of one value; `join`, `replace`, `list` and `sort` are methods, because they count in another way.
FILTERS: dict[str, Callable[..., Any]] = {
    "capitalize": lambda value: _text(value).capitalize(),
    "default": _default,
    "first": lambda value: next(iter(value)),
    "int": _integer,
    "items": _items,
    "last": lambda value: value[-1],
    "length": len,
    "lower": lambda value: _text(value).lower(),
    "reverse": lambda value: value[::-1],
    "sort": sorted,
    "string": _text,
    "title": lambda value: _text(value).title(),
    "tojson": _json,
    "trim": lambda value: _text(value).strip(),
    "truncate": _truncate,
    "unique": lambda value: list(dict.fromkeys(value)),
    "upper": lambda value: _text(value).upper(),
}
