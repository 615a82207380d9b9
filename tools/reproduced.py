"""Write docs/reproduced.md from a run of the project's ledger: python -m tools.reproduced DIR

DIR has the published answers, which are not in the repository. The page has figures only.
"""

from __future__ import annotations

import sys
from pathlib import Path

from multimodal_eval.display.of_reproduction import reproduction_blocks
from multimodal_eval.display.renderer import rendered
from multimodal_eval.run.reproduction import reproduce
from multimodal_eval.run.reproduction.ledger import OUR_LEDGER

PAGE = Path(__file__).parents[1] / "docs" / "reproduced.md"
HEAD = """# What we reproduce

Scores that authors published, computed again from the answers that they published with them, and why some differ. The
last entries are answers of our own, scored by reference programs; they are a part of the package.
`python -m tools.reproduced DIR` writes this page; [Published scores, computed again](reproduce.md) explains the columns
and reasons, and how to make a ledger of your own.

Not in the ledger, since they are not scores of answers: correlations with the judgments of Flickr8k
(`bench/flickr8k.py`), METEOR and 1,000 captions of COCO (`bench/verify_coco.py`), and p-values on the WMT 2017 systems
of sacrebleu ([sacrebleu](metrics/sacrebleu.md)).

"""


def main() -> None:
    PAGE.write_text(HEAD + rendered(list(reproduction_blocks(reproduce(OUR_LEDGER, Path(sys.argv[1])))), "markdown"))


if __name__ == "__main__":
    main()
