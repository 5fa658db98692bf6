"""Numbers in prose are numbers from outputs: one rule that lists those which stand nowhere else.

A number in a prose cell is a claim about what the reader just saw. It should stand in an output
of the same notebook, or in its code (as a setting). What does not is listed, unless its clause
says that it is *published* elsewhere or its cell is tagged `cited`. The rule finds no claim that
is wrong about a number which happens to stand somewhere; it finds numbers that were mistyped,
remembered, or left behind when an output changed. Only digits are read: number words ("two
seconds", "three limits") mostly count what no output shows.
"""

import html
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

LITERAL = r"\d{4}-\d\d-\d\d|\d{1,2}:\d\d(?::\d\d)?|\d+(?:\.\d+){2,}"  # dates, times, versions
THIN = "\u00a0\u2009\u202f"  # spaces that cannot be mistaken for those between two columns
AMOUNT = rf"\d{{1,3}}(?:[,{THIN}]\d{{3}})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?"
BEFORE = r"(?<!\w)(?<!\w[-‑])(?<!\d[.,])"  # not inside a name (GPT-2) or a longer number
SIGN = r"(?:(?<![\w)\]])[-−])?"
IN_PROSE = re.compile(rf"{BEFORE}(?:{LITERAL}|{SIGN}(?:{AMOUNT}))(?!\w)")
# In an output a unit may be glued to the number: 31C, 0.4s; and a model's size is in its name.
IN_OUTPUT = re.compile(rf"{BEFORE}{SIGN}(?:{AMOUNT})|(?<=-)\d+(?:\.\d+)?(?=b\b)")
ABOUT = re.compile(r"\b(?:about|almost|around|nearly|roughly)\s+\W*$", re.IGNORECASE)
PERCENT = re.compile(r"\s?%|\s+percent\b")

LABELS = "notebook|section|exercise|question|rule|remedy|pitfall"
SOME = r"\d[\d.]*(?:(?:,\s*\d[\d.]*)*,?(?:\s+(?:and|or|to)\s+|–)\d[\d.]*)?"
NO_CLAIMS = (
    r"(?ms)^\s*```.*?^\s*```",
    r"`[^`\n]*`",
    r"(?s)<!--.*?-->|<style.*?</style>|<[^>]+>",
    r"(?<=\])\([^)]*\)",  # the target of a link or a picture
    r"https?://\S+",
    r"(?m)^\s*>?\s*\d+[.)]\s",  # the number of a list item
    r"(?m)^#+\s*\d+[\d.]*(?:\s*·)?\s",  # … of a section
    rf"(?i)\b(?:{LABELS.replace('remedy', 'remed(?:y|ie)')})s?\s+{SOME}",
    r"(?ms)^\W*Sources\b.*?(?=\n\s*\n|\Z)",
    r"\([A-Z][^()\d]*,\s*(?:19|20)\d\d\)",  # (Weng, 2023)
)
CLAUSE_END = r"(?<=[.!?;])\s+|(?<=[.!?;][*»\")])\s+|\n\s*\n|\n(?=\s*[-*|>#])"
OPENER_MINUTES = r"(?i)\babout\s+\W*\d+\s+minutes"


@dataclass(frozen=True)
class Claim:
    """A number in prose: the cell (from 1), the number as written, and the clause around it."""

    cell: int
    number: str
    clause: str
    about: bool = False
    percent: bool = False

    def __str__(self) -> str:
        return f"cell {self.cell}: {self.number} is in no output: «{self.clause}»"


def unsupported(notebook) -> list[Claim]:
    """The numbers in a notebook's prose that appear in none of its outputs and code cells.

    Takes a notebook as nbformat reads it. A number counts as found by its value: 14,187 is 14187,
    53 % is 0.53, 4.3 is 4.34 rounded, 0.6 is -0.6 (told as a size); "about 14,000" is 14187.

    >>> [str(claim) for claim in unsupported(notebook)]  # doctest: +SKIP
    ['cell 7: 44 is in no output: «The prompt has 44 tokens.»']
    """
    text = "\n".join(evidence(notebook))
    values = _values(text)
    return [claim for claim in claims(notebook) if not _found(claim, text, values)]


def claims(notebook) -> Iterator[Claim]:
    """The numbers that prose states, in reading order; cited ones and mere labels left out.

    >>> [claim.number for claim in claims(notebook)]  # doctest: +SKIP
    ['34', '58']
    """
    for at, cell in enumerate(notebook.cells, 1):
        if cell.cell_type != "markdown" or "cited" in cell.metadata.get("tags", []):
            continue
        source = re.sub(OPENER_MINUTES, " ", cell.source) if at == 1 else cell.source
        for pattern in NO_CLAIMS:
            source = re.sub(pattern, " ", source)
        yield from _claims_in(at, source)


def _claims_in(at: int, source: str) -> Iterator[Claim]:
    for clause in re.split(CLAUSE_END, source):
        if re.search(r"\bpublished\b", clause, re.IGNORECASE):
            continue
        for found in IN_PROSE.finditer(clause):
            if re.match(r"0\d+$", found.group()):  # 03 is a notebook, no quantity
                continue
            about = bool(ABOUT.search(clause[: found.start()]))
            percent = bool(PERCENT.match(clause[found.end() :]))
            yield Claim(at, found.group(), " ".join(clause.split()), about, percent)


def evidence(notebook) -> Iterator[str]:
    """What the reader can see of a notebook's code cells: outputs as text, code without comments.

    >>> list(evidence(notebook))  # doctest: +SKIP
    ['len(ids)', '58']
    """
    for cell in notebook.cells:
        if cell.cell_type == "code":
            yield _without_comments(cell.source)
            for output in cell.outputs:
                data = output.get("data", {})
                yield from (output.get("text", ""), output.get("evalue", ""))
                yield data.get("text/plain", "")
                for kind in ("text/html", "image/svg+xml"):
                    yield _visible(data.get(kind, ""))


def _without_comments(source: str) -> str:
    """A comment is a claim as well, so it proves nothing."""
    lines = source.splitlines()
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):  # a magic, or code that is shown because it fails
        return source
    for token in tokens:
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return re.sub(r"(?<=\d)_(?=\d)", "", "\n".join(lines))


def _visible(markup: str) -> str:
    """The text of HTML: styles hold many numbers that nobody reads."""
    without = re.sub(r"(?s)<(style|script)\b.*?</\1>|<[^>]+>", " ", markup)
    return html.unescape(without)


def _values(text: str) -> set[Decimal]:
    values = set()
    for found in IN_OUTPUT.finditer(text):
        if re.match(r"[-−]?0\d", found.group()):  # "03.2" is an exercise, "007" a key
            continue
        value = _value(found.group())
        values.add(value)
        if PERCENT.match(text, found.end()):
            values.add(value / 100)
    return values


def _value(number: str) -> Decimal:
    return Decimal(re.sub(rf"[,{THIN}]", "", number).replace("−", "-"))


def _found(claim: Claim, text: str, values: set[Decimal]) -> bool:
    if re.fullmatch(LITERAL, claim.number):
        return bool(re.search(rf"(?<![\d.]){re.escape(claim.number)}(?!\d)", text))
    stated = _value(claim.number)
    sizes = values if stated.is_signed() else values | {abs(value) for value in values}
    if stated in sizes:
        return True
    # One digit is the rounding of too much: a share of 0.53 is no 1.
    if len(str(abs(stated))) > 1 and any(_is_rounded(value, stated) for value in sizes):
        return True
    if claim.percent and any(_is_rounded(value * 100, stated) for value in sizes):
        return True
    return claim.about and any(_is_about(value, stated) for value in sizes)


def _is_rounded(value: Decimal, stated: Decimal) -> bool:
    """Whether the stated number is the value, or the value with fewer digits after the point."""
    digits = Decimal(1).scaleb(stated.as_tuple().exponent)
    both = (ROUND_HALF_UP, ROUND_HALF_EVEN)
    return any(value.quantize(digits, how) == stated for how in both)


def _is_about(value: Decimal, stated: Decimal) -> bool:
    """Whether "about 14,000" is said of 14,187: rounded to the digits before the zeros."""
    zeros = len(str(int(stated))) - len(str(int(stated)).rstrip("0")) if stated else 0
    return value != 0 and round(value, -zeros) == stated
