"""The rules of the Penn Treebank tokenizer.

They were written from black-box observation of the reference program's output for many strings. The longest match wins
(including lookahead), and of equally long matches the first rule.
"""

from __future__ import annotations


def capitalised(words):
    """Words with a capital first letter and the rest in either case."""
    return "|".join(w[0].upper() + "".join(f"[{c}{c.upper()}]" for c in w[1:]) for w in words.split())


def alternatives(words):
    return "|".join(words.split())


# Abbreviations that never end a sentence ("Mr. Smith", "St. Louis").
TITLES = (
    "cf dr ft lt mr ms mt ph st vs wm adj adm adv ave cie col cpl det drs ens gen gov hon jos maj mme mrs "
    "pfc pvt rep rev sen sfc sgt spc ste alex asst atty brig capt cmdr dept elec govs insp invt mlle msgr "
    "natl pres prof reps sens supt assoc attys comdr lieut profs supts treas messrs"
)
# Abbreviations that may end a sentence ("at Foo Inc. The dog": the period counts twice).
ENDERS = (
    "al co ct ga jr ky md mo rd rt sq sr va vt ala apr aug bhd cos dak dec esq est etc ext feb fla fri inc "
    "ind jan jul jun kan ltd mar mon neb nev nov oct plc sep seq sys tel thu tue wed wis wyo ariz assn bldg "
    "blvd bros colo conn corp intl kans mich minn mont okla penn sept tenn tues univ wisc calif thurs"
)
CAPITAL_ENDERS = "az la pa ark del ill ore tex mass miss wash"  # only with a capital: "Tex." but "tex ."
NUMBERED = "ca no op pp art fig nos figs prop"  # only before a number: "No. 5" but "no ."
FILE_TYPES = (
    "c h x gz pl ps py bat bmp cgi cpp dll doc exe gif htm jar jpg mov mp3 pdf php png ppt sql tar txt wav xml "
    "zip docx html java jpeg"
)
# One of these words, capitalised, after "U.S." or "J." shows that a sentence ended there.
STARTERS = (
    "a about according additionally after an as at but earlier he her here however if in it last many more "
    "now once one other our she since so some such that the their then there these they this we what when "
    "while yet you"
)

NAMES = {
    "A": "[A-Za-z]",
    "AN": "[A-Za-z0-9]",
    "UP": "[A-Z<upper>]",
    "D": "[0-9<dig>]",
    "WS": "[ \\t<nbsp><wide><eol>]",
    "SP": "[ <nbsp>]",
    "LET": "[A-Za-z<let><upper>]",  # a letter
    "LETD": "[A-Za-z<let><upper>0-9<dig>]",
    "ACCENT": "(?i)&[aeiou](acute|grave|uml);",  # an accented letter as an HTML entity
    "LTR": "([A-Za-z<let><upper><mark><shy>]|{ACCENT})",  # the characters of words
    "WORD": "{LTR}({LTR}|{D})*",
    "APOS": "('|<rsq>|(?i)&apos;)",
    "APOS3": "(['`<rsq><lsq>]|&apos;)",
    "PART": "({LETD}+|[dDoOlL]{APOS3}{LETD}{LETD}+)",
    "THING": "{PART}([-_<hyph>]{PART})*",  # t-shirt, 1990s, under_score, O'Neil-x
    "DOTTED": "{WORD}([.!?]{WORD})*",  # word.Word, Yahoo!x
    "LISTY": "{AN}[A-Za-z0-9.,<shy>]*(-([A-Za-z0-9<shy>]+|{ACRONYM}\\.))+",  # 20,000-foot, U.S.-based, x,y-z
    "OWNED": "([A-HJ-XZn]{APOS3}{LET}{LET}+|{LET}+[aeiouyAEIOUY]{APOS3}[aeiouA-Z]{LET}*)",  # G'day, ma'am, Mo'Nique
    "CAPS": "[A-Z]+(([+&]|&amp;)[A-Z]+)+",  # AT&T, R&B, A+B
    "NOWORD": "[^{LETD}<mark><shy>]",
    "AUX": "{APOS}(?i)(s|d|m|ll|re|ve)",
    "NUM": "({D}+|{D}*([.:,<shy><sep>]{D}+)+)",
    "SLASHED": "{AN}+(-{A}+){0,2}",
    "ATTR": "{A}[A-Za-z0-9_:.-]*( *= *(\"[^\"]*\"|'[^']*'))?",
    "URLCHAR": '[^ \\t"<>|(){}]',
    "URLEND": '[^ \\t"<>|(){}.!?,-]',
    "PATH": '/[^ \\t"<>|()]+{URLEND}',
    "HOSTCHAR": '[^ \\t"<>|(){}.!?,]',
    "PLAINHOST": "[^ \\t\"<>|(){}.!?,$:;=\\\\^`'[\\]/_0-9A-Z@-]",
    "MAILCHAR": '[^ \\t<nbsp>"<>|(){}]',
    "DOMCHAR": '[^ \\t<nbsp>"<>|(){}.]',
    "EYE": "[-^x=~<>']",
    "EYE2": "[x^=~<>']",
    "NOTAN": "([^A-Za-z0-9]|<eol>)",
    "ACRONYM": "{A}(\\.{A})+",
    "ENDER": f"(((?i){alternatives(ENDERS)}|ph\\.d|ed\\.d)|{capitalised(CAPITAL_ENDERS)}|[Pp]{{1,2}}[tT][ey][sS]?)",
    "TAG": "(<{A}[A-Za-z0-9_:.-]*( +{ATTR})* */? *>|</{A}[A-Za-z0-9_:.-]* *>|<[!?][A-Za-z-][^>]*>)",
    "STARTER": f"{{WS}}+({capitalised(STARTERS)}|Mr\\.|Ms\\.|{{TAG}}){{WS}}",
    "FILEPART": "({LTR}|{D})+\\.",
}

# (action, pattern). An action determines how the match is written and, if the pattern reads past the token, how much of
# it is lookahead. The actions are in ptb_tokenizer.cpp (Tokenizer::spell).
RULES = [
    # --- mark-up and HTML entities
    # tags are one token: <b> <br /> </b> <a href="x"> <!-- x -->
    ("Tag", "{TAG}"),
    # entities with a meaning; others are split: &copy; -> & copy ;
    ("Skip", "(?i)&nbsp;"),
    ("Less", "(?i)&lt;"),
    ("Greater", "(?i)&gt;"),
    ("Ampersand", "(?i)&amp;"),
    ("Dash", "(?i)&[mn]dash;"),
    # numeric entities stay unchanged: &#39;
    ("Plain", "&#[0-9]+;"),
    # --- contractions
    # can|not gon|na
    ("Split3", "(?i)(cannot|gonna|gotta|lemme|gimme|wanna)"),
    # do|n't ca|n't, but not én't or nn't
    ("BeforeNt", "[A-Za-z<shy>]*[A-MO-Za-mo-z]<shy>*[nN]{APOS3}[tT]"),
    # it|'s cannot|'ve
    ("BeforeAux", "{DOTTED}{AUX}"),
    # 's 'll if no letter follows ('sx is a quote and sx)
    ("AuxLook", "{AUX}[^A-Za-z]"),
    ("AuxLook", "{AUX}<eol>"),
    # n't
    ("Aux", "[nN]{APOS3}[tT]"),
    # 'em 'til 'cause
    ("Plain", "(?i){APOS}(em|till?|cause)"),
    # rock 'n' roll, fish 'n chips
    ("Plain", "{APOS}[nN]{APOS}"),
    ("Look1", "{APOS}[nN]([ \\t<nbsp>]|<eol>)"),
    # 't|is 't|was
    ("TwasLook", "(?i)'t(is|was)"),
    # '90s, and '90 before a space
    ("Plain", "{APOS}[2-9]0[sS]"),
    ("Look1", "{APOS}[0-9][0-9]{WS}"),
    # words known with their apostrophe
    ("Plain", "(?i)(c'mon|cap{APOS}n|e'er|o{APOS3}o|c{APOS}est|nat'l|ol{APOS})"),
    # d' l' j' are tokens; y' before a letter: y'|all
    ("Plain", "[dDjJlL]{APOS}"),
    ("YallLook", "[yY]{APOS}{LET}"),
    # --- numbers
    # 1,000.50 -5 10:30 .5
    ("Word", "[-+]?{NUM}"),
    # 1/2, 1 1/2, 1-1/2
    ("Spaced", "({D}{1,4}[- <nbsp>])?{D}{1,4}\\\\?[/<slash>]{D}{1,4}"),
    # 12/25/2020
    ("Word", "{D}{1,2}[-/]{D}{1,2}[-/]{D}{2,4}"),
    # (555) 123-4567
    ("Spaced", "\\([0-9]{2,3}\\){SP}?[0-9]{3,4}[- <nbsp>]?[0-9]{3,5}"),
    # 555 123 4567, +44 20 7946 0958
    ("Spaced", "\\+{0,2}[0-9]{2,4}[- <nbsp>]([0-9]{2,4}[- <nbsp>])?[0-9]{3,4}[- <nbsp>]?[0-9]{3,5}"),
    # one-character fractions, written out
    ("Quarter", "<quarter>"),
    ("Half", "<half>"),
    ("ThreeQuarters", "<threeq>"),
    ("Third", "<third>"),
    ("TwoThirds", "<twothird>"),
    # --- addresses
    # http://a.b/c?d=e without the punctuation that follows it
    ("Plain", "(?i)https?://{URLCHAR}+{URLEND}"),
    # user@example.com <a@b>
    ("Plain", "((?i)<|&lt;)?{AN}{MAILCHAR}*@({DOMCHAR}+\\.)*{DOMCHAR}+>?"),
    # @home, #tag
    ("Plain", "@[A-Za-z_][A-Za-z0-9_]*"),
    ("Plain", "#{LTR}+"),
    # --- abbreviations
    # Mr. St. vs.
    ("Plain", f"((?i){alternatives(TITLES)})\\.|[Mm](f|t)[gG]\\."),
    # Co. Ltd. does not end a sentence
    ("Numbered", "(?i)(co|pte|pty)\\.{WS}ltd"),
    # Inc. before a capital, a tag or two spaces ends a sentence
    ("TwoDots", "{ENDER}\\.({WS}+({UP}|{TAG})|{WS}{WS})"),
    # two characters after it that are not a word are separated from it: Jr.|x, Inc.|-1
    ("Look2", "{ENDER}\\.({NOWORD}[^<eol>]|[^<eol>]({NOWORD}|<eol>))"),
    ("Look1", "{ENDER}\\.([^.]|<eol>)"),
    ("Plain", "{ENDER}\\."),
    # U.S. p.m. e.g.; the period counts twice in "U.S. The"
    ("TwoDots", "{ACRONYM}\\.{STARTER}"),
    ("Plain", "{ACRONYM}\\."),
    # J. Smith, but "vitamin c|. The"
    ("Letter", "{A}\\.{STARTER}"),
    ("Plain", "{A}\\."),
    # No. 5, pp. 12
    ("Numbered", f"(?i)({alternatives(NUMBERED)})\\.{{WS}}?{{D}}"),
    # 1.jpg x1.c (with letters only, it would be a dotted word anyway)
    ("Look1", f"(?i){{FILEPART}}+({alternatives(FILE_TYPES)})([!,.?]|{{WS}})"),
    # any word keeps its period before a comma: "word.,"
    ("LookByte", "({DOTTED}|{THING}|{CAPS}|{LISTY})\\.[,;:]"),
    # --- words
    # word.Word t-shirt 21st
    ("Word", "{DOTTED}|{THING}"),
    # ma'am G'day 20,000-foot
    ("Word", "{OWNED}|{LISTY}"),
    # www.site.com/x
    ("Plain", "(?i)www\\.({HOSTCHAR}+\\.)+{A}{2,4}({PATH})?"),
    # site.org/path
    ("Plain", "(?i)({PLAINHOST}+\\.)+(com|net|org|edu)({PATH})?"),
    # and/or km/h a/b/c
    ("Word", "{SLASHED}(\\\\?/{SLASHED}){1,2}"),
    # AT&T
    ("Caps", "{CAPS}"),
    # C++ C# F#
    ("Plain", "(?i)(c\\+\\+|[cf]#)"),
    # --- faces
    # :-) =D ;P before anything except a letter or digit
    ("FaceLook", "[<>]?[:;=][-o'*]?[)(DPpdO|\\\\[\\]\\{@]{NOTAN}"),
    # ^_^ (-.-)
    ("Face", "{EYE}_{EYE}|\\({EYE}[_.]?{EYE}\\)|\\({EYE2}-{EYE2}\\)"),
    # --- marks
    # a double quote opens before a letter, digit or $
    ("Open2", '("|&quot;)[A-Za-z0-9$]'),
    ("Close2", '"|&quot;'),
    ("Plain", "(?i)&quot;"),
    # a single quote opens before a letter and another character
    ("Open1", "'{A}[^ \\t<nbsp>]"),
    ("Close1", "'|&apos;"),
    ("Close2", "''"),
    # a curly apostrophe cannot open a quote, so a letter may follow its s, ll, n
    ("Plain", "{APOS}[nN]"),
    ("Aux", "{AUX}"),
    # other quotes, one or two together
    ("Quotes", "[`<lq><rq><lsq><rsq><langle><rangle><lowq>]{1,2}"),
    # ... and . . . are one token
    ("Ellipsis", "\\.{3,5}|(\\.{SP}){2,4}\\.|<dots>"),
    # ?! together; two to four hyphens are a dash, more are kept
    ("Plain", "[?!]+"),
    ("Dash", "--{1,3}|<dash>"),
    ("Plain", "-----+"),
    # runs of one symbol
    ("Plain", "_+|\\*+|(\\\\\\*)+|#+|@+|<sign>?(<sup>+|<sub>+)|<<|>>"),
    # money: US$ stays, others are renamed
    ("Plain", "[A-Z]*$"),
    ("Dollar", "<euro>"),
    ("Pound", "<pound>"),
    ("Cents", "<cent>"),
    # brackets, and their names if they are in the text
    ("Plain", "(?i)-[lr][rcs]b-"),
    ("Lrb", "\\("),
    ("Rrb", "\\)"),
    ("Lsb", "\\["),
    ("Rsb", "\\]"),
    ("Lcb", "\\{"),
    ("Rcb", "\\}"),
    # every other symbol by itself
    ("Plain", "[-.,;:/%&+=<>|\\\\^~<sym><slash><sign>]"),
    # white space, and characters that belong to no token
    ("Skip", "[ \\t<nbsp><wide>]+|<junk>"),
]
