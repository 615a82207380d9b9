"""The value of a number in LaTeX, as latex2sympy2 1.9.1 and Python's arithmetic give it.

Nothing is executed, and neither time nor memory depend on the size of the numbers in the text.

    expression = term {(+|-) term}
    term       = factor {(* | / | : | \\cdot | \\times | \\div) factor}
    factor     = {+|-} power {power}                            2\\pi is a product; it binds before / and after ^
    power      = atom {^ atom} {!}
    atom       = number [\\%] | \\pi | \\frac{…}{…} | \\binom{…}{…} | \\sqrt[…]{…} | (…) | {…} | […]
                 | \\lfloor … \\rfloor | \\log _ atom [^ atom] ((…) | term) | function
    function   = (\\sin | \\cos | \\tan | \\arcsin | \\arccos | \\arctan | \\log | \\exp) [^ atom] ((…) | term)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache

__all__ = ["latex_number"]

Number = int | float
_LONGEST = 1000  # characters
_LARGEST_BITS = 4096  # of an integer; a larger result counts as none
_DEEPEST = 40  # nested groups
_LAYOUT = re.compile(r"\\(?:displaystyle|q?quad|left|right)(?![a-z])|~|\\,|\$|\s+")
_TOKENS = re.compile(
    r"(?P<number>(?:\d*(?:,\d{3})*\.\d+|\d+(?:,\d{3})*)(?:\\%)?)|(?P<command>\\(?:pi|frac|binom|sqrt|cdot|times|div|[a-zA-Z]+))|(?P<mark>[-+*/:^!(){}\[\]])"
)
_FUNCTIONS = {
    **{rf"\{name}": getattr(math, name) for name in ("sin", "cos", "tan", "exp")},
    **{rf"\arc{name}": getattr(math, f"a{name}") for name in ("sin", "cos", "tan")},
    r"\log": math.log10,
}
_STARTS = frozenset({r"\pi", r"\frac", r"\binom", r"\sqrt", r"\lfloor", *_FUNCTIONS})  # commands that start a factor
_PLAIN_STARTS = _STARTS - {r"\sqrt", *_FUNCTIONS}  # the argument of a function ends before another function
_OPENING = {"(": ")", "{": "}", "[": "]"}
_TIMES, _OVER = ("*", r"\cdot", r"\times"), ("/", ":", r"\div")
# What ends a number; the rest of the text is then ignored. latex2sympy2 also stops at names of functions of matrices.
_END = re.compile(
    r"\Z|[}\]).&'_]|\\(?:\}|to|[rR]ightarrow)(?![a-zA-Z])"
    r"|tr|norm|eye|zeros|ones|cols|rows|diag|rank|rref|[hv]stack|nullspace|eigen|svd|gcd|lcm|floor|ceil|matrix|arc?(?:sin|cos|tan)h"
)


class _NotANumberError(Exception):
    """The text is not a number."""


def latex_number(text: str) -> Number | None:
    r"""The value of a text, or None if it is not a number.

    A number may be followed by a closing bracket or a full stop, and then by anything: `\frac{1}{2}}. So` is 0.5.
    Symbols, equations and lists are not numbers.
    """
    return _value(text[:_LONGEST])


@lru_cache(maxsize=16384)
def _value(text: str) -> Number | None:
    try:
        return _Reader(_LAYOUT.sub(" ", text)).value()
    except (_NotANumberError, ArithmeticError, ValueError, RecursionError):
        return None


class _Reader:
    """Reads an expression from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.start, self.place, self.depth = text, 0, 0, 0
        self.token = self.kind = ""
        self.advance()

    def advance(self) -> str:
        """Move to the next token and return the present one. A text without a further token has the kind `rest`."""
        token = self.token
        while self.text[self.place : self.place + 1] == " ":
            self.place += 1
        self.start = self.place
        match = _TOKENS.match(self.text, self.place)
        if match is None:
            self.token, self.kind = self.text[self.place : self.place + 1], "rest"
        else:
            self.token, self.kind, self.place = match[0], match.lastgroup or "", match.end()
        return token

    def value(self) -> Number:
        value = self.expression()
        if _END.match(self.text, self.start) is None:
            raise _NotANumberError
        return value

    def expression(self) -> Number:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _NotANumberError
        value = self.term()
        while self.token in ("+", "-"):
            sign = self.advance()
            value = value + self.term() if sign == "+" else value - self.term()
        self.depth -= 1
        return value

    def term(self, starts: frozenset[str] = _STARTS) -> Number:
        value = self.factor(starts)
        while self.token in _TIMES or self.token in _OVER:
            operator = self.advance()
            value = _product(value, self.factor(starts)) if operator in _TIMES else value / self.factor(starts)
        return value

    def factor(self, starts: frozenset[str]) -> Number:
        sign = 1
        while self.token in ("+", "-"):
            sign = -sign if self.advance() == "-" else sign
        value = self.power()
        while self.kind == "number" or self.token in _OPENING or self.token in starts:
            value = _product(value, self.power())
        return sign * value

    def power(self) -> Number:
        value = self.atom()
        while self.token == "^":
            self.advance()
            value = _power(value, self.atom())
        while self.token == "!":
            self.advance()
            value = _factorial(value)
        return value

    def atom(self) -> Number:
        token, kind = self.token, self.kind
        if token in _OPENING:
            return self.group(token)
        self.advance()
        if kind == "number":
            digits = token.replace(",", "").removesuffix(r"\%")
            value = float(digits) if "." in digits else int(digits)
            return value / 100 if token.endswith("%") else value
        if token == r"\pi":
            return math.pi
        if token == r"\frac":
            return self.group("{") / self.group("{")
        if token == r"\binom":
            return _binomial(self.group("{"), self.group("{"))
        if token == r"\lfloor":
            value = self.expression()
            self.close(r"\rfloor")
            return math.floor(value)
        if token == r"\log" and self.token == "_":
            self.place += 1
            self.advance()
            base = self.atom()
            return self.function(lambda value: math.log(value, base))
        if token in _FUNCTIONS:
            return self.function(_FUNCTIONS[token])
        if token == r"\sqrt":
            root = self.group("[") if self.token == "[" else 2
            value = self.group("{")
            return math.sqrt(value) if root == 2 else _power(value, 1 / root)
        raise _NotANumberError

    def function(self, function: Callable[[float], float]) -> Number:
        exponent: Number = 1
        if self.token == "^":
            self.advance()
            exponent = self.atom()
        value = function(self.group("(") if self.token == "(" else self.term(_PLAIN_STARTS))
        return value if exponent == 1 else _power(value, exponent)

    def group(self, opening: str) -> Number:
        if self.token != opening:
            raise _NotANumberError
        self.advance()
        value = self.expression()
        self.close(_OPENING[opening])
        return value

    def close(self, closing: str) -> None:
        if self.token != closing:
            raise _NotANumberError
        self.advance()


def _bits(value: Number) -> int:
    return value.bit_length() if isinstance(value, int) else 0


def _product(left: Number, right: Number) -> Number:
    if _bits(left) + _bits(right) > _LARGEST_BITS:
        raise _NotANumberError
    return left * right


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(base, int) and isinstance(exponent, int) and exponent * _bits(base) > _LARGEST_BITS:
        raise _NotANumberError
    power = base**exponent
    if isinstance(power, complex):
        raise _NotANumberError
    return float(power) if isinstance(power, float) else int(power)


def _binomial(count: Number, chosen: Number) -> int:
    if not isinstance(count, int) or not isinstance(chosen, int) or not 0 <= chosen <= count <= 500:
        raise _NotANumberError
    return math.comb(count, chosen)


def _factorial(value: Number) -> int:
    if not isinstance(value, int) or not 0 <= value <= 500:
        raise _NotANumberError
    return math.factorial(value)
