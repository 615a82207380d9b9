"""Record the values that latex2sympy2 and Python's arithmetic give to LaTeX texts: latex_numbers.json.gz.

    python3 -m venv V && V/bin/pip install latex2sympy2==1.9.1
    V/bin/python tests/golden/record_latex_numbers.py [--out DIR]

The texts are put together at random from a fixed seed. A value is rounded to two places, as in MATH-Vision's program;
null if the program fails. It executes what the texts say: the pieces below are harmless.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import random
import string
from math import *  # noqa: F403 - as in MATH-Vision's program
from pathlib import Path

SEED, TEXTS = 20261118, 3000
NUMBERS = ("5", r"\frac{1}{2}", r"2\pi", "3+4", "2.5", r"\sqrt{3}")
WORDS = (
    "tr triangles norm normal eyes zeros ones columns rows row diagonal rank svd gcd lcm floor matrix cm dm km m mm "
    "units degrees inches feet square dollars percent people a b c x y i and or therefore hours"
).split()
COMMANDS = (
    r"\rightarrow|\leftarrow|\Rightarrow|\to|\le|\approx|\infty|\circ|\text{cm}|\mathrm{cm}|\mathrm{~cm}|\degree|\;|\!|\%"
    r"| \%|\#|\{|\}|\angle|\hline|\cup|\pm|\ldots|{cm}|^2|^{2}|^\circ|!|(3)|[3]|{3}|_2|_{2}|,4|,400|, 4|;4|:4|\cdot4|/4"
    r'|e3|^3^2|2e5|"|π|°|½|=3'
).split("|")
PIECES = (
    r"1 2 12 0.5 \pi \frac{1}{2} \frac{3}{4} \sqrt{2} \sqrt[3]{8} (2+3) {4} [5] - + * / \cdot \times ^2 ^{3} \% : ("
    r" ) { } 1,000 .5 7. \div \sin \cos \log \exp \frac12 \sqrt2 2^{-1} |3| \binom{4}{2} x ,"
).split()


def texts() -> list[str]:
    source = random.Random(SEED)
    ends = [*string.punctuation.replace("<", "").replace(">", ""), *WORDS, *COMMANDS]
    joined = ("".join(source.choices([*PIECES, " "], k=source.randint(1, 6))) for _ in range(TEXTS))
    return sorted({*(number + end for number in NUMBERS for end in ends), *joined})


def value(text: str) -> int | float | None:
    from latex2sympy2 import latex2sympy  # type: ignore[import-not-found,unused-ignore]

    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            number = round(eval(str(latex2sympy(text))), 2)
    except Exception:  # noqa: BLE001 - as in MATH-Vision's program
        return None
    return number if isinstance(number, int | float) and abs(number) < 1e300 else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    content = json.dumps({text: value(text) for text in texts()}, ensure_ascii=False, separators=(",", ":"))
    file = parser.parse_args().out / "latex_numbers.json.gz"
    file.write_bytes(gzip.compress(content.encode(), mtime=0))


if __name__ == "__main__":
    main()
