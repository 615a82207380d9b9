"""The characters of the Penn Treebank tokenizer: letters, marks, digits, symbols, and their lower case.

Written from observation: every character of the basic plane was passed to the reference program in several contexts.
"""

from __future__ import annotations

# Ranges of non-ASCII code points (hex): a-b is a range, a:b every second one.
# All other non-ASCII characters are "junk": dropped between tokens.
LETTERS = """
aa b5 ba c0-d6 d8-f6 f8-2c1 2c6-2d1 2e0-2e4 2ec:2ee 370-374 376-377 37a-37d 386:388 389-38a 38c:38e 38f-3a1
3a3-3f5 3f7-481 48a-527 531-556 559 561-587 5d0-5ea 5f0-5f2 620-64a 66e-66f 671-6d3 6d5 6e5-6e6 6ee-6ef
6fa-6fc 6ff 710:712 713-72f 74d-7a5 7b1 7ca-7ea 7f4-7f5 7fa 800-815 81a 824 828 840-858 8a0:8a2 8a3-8ac
904-939 93d 950 958-961 971-977 979-97f 985-98c 98f-990 993-9a8 9aa-9b0 9b2 9b6-9b9 9bd 9ce 9dc-9dd 9df-9e1
9f0-9f1 a05-a0a a0f-a10 a13-a28 a2a-a30 a32-a33 a35-a36 a38-a39 a59-a5c a5e a72-a74 a85-a8d a8f-a91 a93-aa8
aaa-ab0 ab2-ab3 ab5-ab9 abd ad0 ae0-ae1 b05-b0c b0f-b10 b13-b28 b2a-b30 b32-b33 b35-b39 b3d b5c-b5d b5f-b61
b71 b83:b85 b86-b8a b8e-b90 b92-b95 b99-b9a b9c:b9e b9f ba3-ba4 ba8-baa bae-bb9 bd0 c05-c0c c0e-c10 c12-c28
c2a-c33 c35-c39 c3d c58-c59 c60-c61 c85-c8c c8e-c90 c92-ca8 caa-cb3 cb5-cb9 cbd cde:ce0 ce1 cf1-cf2 d05-d0c
d0e-d10 d12-d3a d3d d4e d60-d61 d7a-d7f d85-d96 d9a-db1 db3-dbb dbd dc0-dc6 e01-e30 e32-e33 e40-e46 e81-e82
e84 e87-e88 e8a e8d e94-e97 e99-e9f ea1-ea3 ea5:ea7 eaa-eab ead-eb0 eb2-eb3 ebd ec0-ec4 ec6 edc-edf f00
f40-f47 f49-f6c f88-f8c 1000-102a 103f 1050-1055 105a-105d 1061 1065-1066 106e-1070 1075-1081 108e 10a0-10c5
10c7 10cd 10d0-10fa 10fc-1248 124a-124d 1250-1256 1258:125a 125b-125d 1260-1288 128a-128d 1290-12b0 12b2-12b5
12b8-12be 12c0:12c2 12c3-12c5 12c8-12d6 12d8-1310 1312-1315 1318-135a 1380-138f 13a0-13f4 1401-166c 166f-167f
1681-169a 16a0-16ea 1700-170c 170e-1711 1720-1731 1740-1751 1760-176c 176e-1770 1780-17b3 17d7 17dc 1820-1877
1880-18a8 18aa 18b0-18f5 1900-191c 1950-196d 1970-1974 1980-19ab 19c1-19c7 1a00-1a16 1a20-1a54 1aa7 1b05-1b33
1b45-1b4b 1b83-1ba0 1bae-1baf 1bba-1be5 1c00-1c23 1c4d-1c4f 1c5a-1c7d 1ce9-1cec 1cee-1cf1 1cf5-1cf6 1d00-1dbf
1e00-1f15 1f18-1f1d 1f20-1f45 1f48-1f4d 1f50-1f57 1f59:1f5f 1f60-1f7d 1f80-1fb4 1fb6-1fbc 1fbe 1fc2-1fc4
1fc6-1fcc 1fd0-1fd3 1fd6-1fdb 1fe0-1fec 1ff2-1ff4 1ff6-1ffc 2071 207f 2090-209c 2102 2107 210a-2113 2115
2119-211d 2124:212a 212b-212d 212f-2139 213c-213f 2145-2149 214e 2183-2184 2c00-2c2e 2c30-2c5e 2c60-2ce4
2ceb-2cee 2cf2-2cf3 2d00-2d25 2d27 2d2d 2d30-2d67 2d6f 2d80-2d96 2da0-2da6 2da8-2dae 2db0-2db6 2db8-2dbe
2dc0-2dc6 2dc8-2dce 2dd0-2dd6 2dd8-2dde 2e2f 3005-3006 3031-3035 303b-303c 3041-3096 309d-309f 30a1-30fa
30fc-30ff 3105-312d 3131-318e 31a0-31ba 31f0-31ff 3400-4db5 4e00-9fcc a000-a48c a4d0-a4fd a500-a60c a610-a61f
a62a-a62b a640-a66e a67f-a697 a6a0-a6e5 a717-a71f a722-a788 a78b-a78e a790-a793 a7a0-a7aa a7f8-a801 a803-a805
a807-a80a a80c-a822 a840-a873 a882-a8b3 a8f2-a8f7 a8fb a90a-a925 a930-a946 a960-a97c a984-a9b2 a9cf aa00-aa28
aa40-aa42 aa44-aa4b aa60-aa76 aa7a aa80-aaaf aab1 aab5-aab6 aab9-aabd aac0:aac2 aadb-aadd aae0-aaea aaf2-aaf4
ab01-ab06 ab09-ab0e ab11-ab16 ab20-ab26 ab28-ab2e abc0-abe2 ac00-d7a3 d7b0-d7c6 d7cb-d7fb f900-fa6d fa70-fad9
fb00-fb06 fb13-fb17 fb1d:fb1f fb20-fb28 fb2a-fb36 fb38-fb3c fb3e:fb40 fb41:fb43 fb44:fb46 fb47-fbb1 fbd3-fd3d
fd50-fd8f fd92-fdc7 fdf0-fdfb fe70-fe74 fe76-fefc ff21-ff3a ff41-ff5a ff66-ffbe ffc2-ffc7 ffca-ffcf ffd2-ffd7
ffda-ffdc
"""
MARKS = """
2c2-2c5 2d2-2df 2e5-2eb 2ed:2ef 2f0-36f 375 378-379 384-385 3f6 483-487 55a-55f 591-5bd 5bf:5c1 5c2:5c4
5c5:5c7 615-61a 64b-65e 670 6d6-6e4 6e7-6ed 6fd-6fe 70f:711 730-74c 7a6-7b0 7eb-7f3 900-903 93c:93e 93f-94e
951-955 962-963 981-983 9bc:9be 9bf-9c4 9c7-9c8 9cb-9cd 9d7 9e2-9e3 a01-a03 a3c:a3e a3f-a4f a81-a83 abc:abe
abf-acf b82 bbe-bc2 bc6-bc8 bca-bcd c01-c03 c3e-c56 d3e-d44 d46-d48 e31 e34-e3a e47-e4e eb1 eb4-ebc ec8-ecd
"""
DIGITS = """
660-669 6f0-6f9 7c0-7c9 966-96f 9e6-9ef a66-a6f ae6-aef b66-b6f be6-bef c66-c6f ce6-cef d66-d6f e50-e59
ed0-ed9 f20-f29 1040-1049 1090-1099 17e0-17e9 1810-1819 1946-194f 19d0-19d9 1a80-1a89 1a90-1a99 1b50-1b59
1bb0-1bb9 1c40-1c49 1c50-1c59 a620-a629 a8d0-a8d9 a900-a909 a9d0-a9d9 aa50-aa59 abf0-abf9 ff10-ff19
"""
SYMBOLS = """
a1 a5-a9 ac:ae af-b1 b4:b6 b7-b8 bf d7 f7 37e 387 589 5be:5c0 5c3 5c6 5f3-5f4 600-603 606-60c 614 61b 61e-61f
66a 66d 6d4 700-70d 7f6-7f8 964-965 e3f e4f 1fbd 2016-2017 2020-2023 2030-2038 203b 203e-2042 2044 207a-207e
208a-208e 20a4 2100-2101 2103-2106 2108-2109 2114:2116 2117-2118 211e-2123 2125:2129 212e 213a-213b 2140-2144
214a-214d 214f 2155-215e 2190-2bff 3001-3002 3012 30fb ff01-ff0f ff1a-ff20 ff3b-ff40 ff5b-ff65 ffe0-ffe1
ffe5-ffe6
"""
LOWER = """
-42319 a7ab
-42315 a7ac
-42308 a7aa a7ae
-42307 a7c5
-42305 a7ad
-42282 a7b1
-42280 a78d
-42261 a7b2
-42258 a7b0
-35384 a7c6
-35332 a77d
-10815 2c7e-2c7f
-10783 2c6f
-10782 2c70
-10780 2c6d
-10749 2c6e
-10743 2c62
-10727 2c64
-8383 212a
-8262 212b
-7615 1e9e
-7517 2126
-3814 2c63
-3008 1c90-1cba 1cbd-1cbf
-195 243
-163 23d
-130 220 3fd-3ff
-128 1ff8-1ff9
-126 1ffa-1ffb
-121 178
-112 1fea-1feb
-100 1fda-1fdb
-97 1f6
-86 1fc8-1fcb
-74 1fba-1fbb
-60 3f4
-56 1f7
-48 a7c4
-9 1fbc 1fcc 1ffc
-8 1f08-1f0f 1f18-1f1d 1f28-1f2f 1f38-1f3f 1f48-1f4d 1f59:1f5f 1f68-1f6f 1f88-1f8f 1f98-1f9f 1fa8-1faf 1fb8-1fb9
-8 1fd8-1fd9 1fe8-1fe9
-7 3f9 1fec
1 100:12e 132:136 139:147 14a:176 179:17d 182:184 187 18b 191 198 1a0:1a4 1a7 1ac 1af 1b3:1b5 1b8 1bc 1c5 1c8 1cb:1db
1 1de:1ee 1f2:1f4 1f8:21e 222:232 23b 241 246:24e 370:372 376 3d8:3ee 3f7 3fa 460:480 48a:4be 4c1:4cd 4d0:52e
1 1e00:1e94 1ea0:1efe 2183 2c60 2c67:2c6b 2c72 2c75 2c80:2ce2 2ceb:2ced 2cf2 a640:a66c a680:a69a a722:a72e a732:a76e
1 a779:a77b a77e:a786 a78b a790:a792 a796:a7a8 a7b4:a7be a7c2 a7c7:a7c9 a7f5
2 1c4 1c7 1ca 1f1
8 3cf 13f0-13f5
15 4c0
16 2160-216f
26 24b6-24cf
28 2132
32 c0-d6 d8-de 391-3a1 3a4-3ab 410-42f ff21-ff3a
37 388-38a
38 386
48 531-556 2c00-2c2e
63 38e-38f
64 38c
69 244
71 245
79 18e
80 400-40f
116 37f
202 18f
203 190
205 189-18a 193
206 186
207 194
209 197
210 181
211 196 19c
213 19d
214 19f
217 1b1-1b2
218 1a6 1a9 1ae
219 1b7
928 a7b3
7264 10a0-10c5 10c7 10cd
10792 23e
10795 23a
38864 13a0-13ef
"""


def ranges(text):
    """The code points of a range text such as '41-5a 100:17e b5'."""
    for item in text.split():
        if "-" in item:
            a, b = item.split("-")
            yield from range(int(a, 16), int(b, 16) + 1)
        elif ":" in item:
            a, b = item.split(":")
            yield from range(int(a, 16), int(b, 16) + 1, 2)
        else:
            yield int(item, 16)


# Atoms: the symbols of the rules. Each ASCII character is an atom, everything else belongs to one of these groups.
GROUPS = [
    "let",
    "mark",
    "dig",
    "sym",
    "junk",
    "wide",
    "nbsp",
    "eol",
    "shy",
    "cent",
    "pound",
    "euro",
    "quarter",
    "half",
    "threeq",
    "third",
    "twothird",
    "slash",
    "hyph",
    "sep",
    "dash",
    "dots",
    "sup",
    "sub",
    "sign",
    "lq",
    "rq",
    "lsq",
    "rsq",
    "langle",
    "rangle",
    "lowq",
    "upper",
]
ATOM = {chr(c): c for c in range(128)}
for i, g in enumerate(GROUPS):
    ATOM[g] = 128 + i
NATOMS = 128 + len(GROUPS)

SPECIAL = {
    "wide": "2000-200a 3000",  # wide spaces: white space
    "nbsp": "a0",
    "shy": "ad",
    "cent": "a2",
    "pound": "a3",
    "euro": "80 a4 20a0 20ac",  # written "$"
    "quarter": "bc",
    "half": "bd",
    "threeq": "be",
    "third": "2153",
    "twothird": "2154",
    "slash": "2044",
    "hyph": "58a 2010 2011",  # fraction slash; other hyphens
    "sep": "66b 66c",  # Arabic decimal and thousands marks
    "dash": "96 97 2013-2015",
    "dots": "2026",
    "sup": "b2 b3 b9 2070 2074-2079",
    "sub": "2080-2089",
    "sign": "207a 207b 208a 208b",  # raised, lowered digits
    "lq": "93 ab 201c",
    "rq": "94 bb 201d",
    "lsq": "91 2018 201b",
    "rsq": "92 2019",
    "langle": "2039",
    "rangle": "203a",
    "lowq": "201a 201e 201f",
}


# Capitals are the letters with a lower case, except title-case ones, and a few letters without a lower case.
NOT_CAPITAL = "1c5 1c8 1cb 1f2 13a0-13f4 1f88-1f8f 1f98-1f9f 1fa8-1faf 1fbc 1fcc 1ffc"
ALSO_CAPITAL = (
    "130 3a3 3d2-3d4 2102 2107 210b-210d 2110-2112 2115 2119-211d 2124 2128 212c 212d 2130 2131 2133 213e 213f 2145"
)


def lower_map():
    """The lower case of single non-ASCII code points (dotted I and final sigma are handled in C++)."""
    table = {}
    for line in LOWER.split("\n"):
        if line:
            delta, rest = line.split(" ", 1)
            for c in ranges(rest):
                table[c] = c + int(delta)
    return table


def atoms_of_bmp():
    """The atom of every code point below 0x10000."""
    atom = [ATOM["junk"]] * 0x10000
    for name, text in (("let", LETTERS), ("mark", MARKS), ("dig", DIGITS), ("sym", SYMBOLS)):
        for c in ranges(text):
            atom[c] = ATOM[name]
    for c in lower_map():
        if atom[c] == ATOM["let"]:
            atom[c] = ATOM["upper"]
    for c in ranges(NOT_CAPITAL):
        atom[c] = ATOM["let"]
    for c in ranges(ALSO_CAPITAL):
        atom[c] = ATOM["upper"]
    for name, text in SPECIAL.items():
        for c in ranges(text):
            atom[c] = ATOM[name]
    for c in range(128):
        atom[c] = c
    # line breaks of every kind are spaces inside a caption
    for c in (0x0A, 0x0B, 0x0C, 0x0D, 0x85, 0x2028, 0x2029):
        atom[c] = ord(" ")
    return atom
