"""Write ptb_lines.json.gz: captions as the lines of one file, tokenized by the Java program of pycocoevalcap.

    python tests/golden/record_lines.py        (needs pycocoevalcap==1.2 and Java)

Every end of a caption is followed by every start of the next one.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

FILE = Path(__file__).with_name("ptb_lines.json.gz")
ENDS = (
    "a sign reads K.|vitamin c.|No.|pp.|Inc.|Co.|U.S.|the U.S.|e.g.|Jr.|Mr.|it's|rock 'n|in '90|in the '90s|it 's|:)|"
    "=D|5|555|1|y'|'|\"|(|<b|a.|x.|J.|fig.|a 'tis|file.txt|1.jpg|d'|...|. .|a -|Ph.D.|Pte.|no|word.|cannot|'s|"
    "'ll|Sept.|n't|$|#|@|http://a.b/|user@x|1/|12/|<a href="
).split("|")
STARTS = (
    "A man|a man|The dog|the dog|5 dogs|five|Ltd|ltd. x||  |. x|Mr. X|<b> x|<a href='x'> y|An|a|A|It is|He|'s|\"x|(x)|"
    "-1|,x|;|!|1/2|123 4567|К|Ё one|\tThe x|\u00a0The x|You go|x."
).split("|")


def main() -> None:
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    lines = [line for end in ENDS for start in STARTS for line in (end, start)]
    tokens = PTBTokenizer().tokenize({0: [{"caption": line} for line in lines]})[0]
    with gzip.GzipFile(FILE, "wb", mtime=0) as file:
        file.write(json.dumps({"lines": lines, "tokens": tokens}, ensure_ascii=False).encode())


if __name__ == "__main__":
    main()
