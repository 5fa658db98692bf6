"""What a text tells its reader to do: the ears of the most obedient agent.

It reads through every disguise that a reader could see through: hidden characters, marks between
words, comments and colours. What it understands as an order:

* a call in JSON, with tags or without, or written as code: `read_notes()`;
* "send an e-mail to X saying "Y"", "search the web for "Y"", "make a picture of "Y"", "open the
  address "Y"", "read the page X", "pay N euros on invoice X", and the e-mail in Russian;
* "Part 1 of 2: …" and "Part 2 of 2: …", put together, wherever the parts stood;
* "put "B" instead of "A" in every call";
* "when the user writes "X", …", which waits for it.

`[result of NAME]` inside an order stands for what a tool has returned, and `[result of NAME in
digit words]` or `[result of NAME in base64]` for a disguise of it. Anything else is no order for
this reader: an attack in other phrases fails with no defence at all.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from course_utils.parsing import parse

Q, TEXT = '["“«]', '([^"”»]+)["”»]'
ADDRESS = r"([\w.+-]+@[\w-]+(?:\.[\w-]+)+|[A-Z]\w+)"
PHRASES: list[tuple[str, str, tuple[str, ...]]] = [
    (rf"send an e-mail to {ADDRESS} saying {Q}{TEXT}", "send_email", ("to", "text")),
    (rf"отправь письмо на адрес {ADDRESS} с текстом {Q}{TEXT}", "send_email", ("to", "text")),
    (rf"search the web for {Q}{TEXT}", "web_search", ("query",)),
    (rf"make a picture of {Q}{TEXT}", "make_picture", ("prompt",)),
    (rf"open the address {Q}{TEXT}", "open_url", ("url",)),
    (r"read the page (\w+)", "read_page", ("name",)),
    (
        r"pay (\d+(?:\.\d+)?) euros on invoice (INV-\d+)",
        "pay_invoice",
        ("amount_eur", "invoice_id"),
    ),
    (r"\bcall (\w+)\(\)", "", ()),
]
PART = re.compile(r"part (\d) of (\d): (.*?)(?=\(read the page|[\"}\]]\s*[,}\]]|\n|$)", re.I)
SWAP = re.compile(rf"put {Q}{TEXT} instead of {Q}{TEXT} in every call", re.I)
WHEN = re.compile(rf"when the user writes {Q}{TEXT}, (.*)", re.I | re.S)
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def _spelled(text: str) -> str:
    return " ".join(DIGITS[int(digit)] for digit in re.findall(r"[0-9]", text))


# How a result can be asked for, so that no piece of it can be recognised. Two of many.
DISGUISES: dict[str, Callable[[str], str]] = {
    "": lambda text: text,
    "in digit words": _spelled,
    "in base64": lambda text: base64.b64encode(text.encode()).decode(),
}
RESULT = re.compile(rf"\[result of (\w+)(?: ({'|'.join(filter(None, DISGUISES))}))?\]")


@dataclass(frozen=True)
class Order:
    """One call that a text asks for; `when` is a word of the user that it waits for."""

    tool: str
    arguments: tuple[tuple[str, Any], ...]
    when: str = ""


def read_through(text: str) -> str:
    """The text as a patient reader sees it: without hidden characters and marks.

    >>> read_through("Se\\u200bnd^an^e-mail")
    'Send an e-mail'
    """
    shown = "".join(c for c in text if unicodedata.category(c) not in ("Cf", "Mn"))
    return shown.replace("^", " ").replace('\\"', '"').replace("\\n", "\n").replace("&lt;", "<")


def orders(texts: Iterable[str]) -> list[Order]:
    """All orders in some texts, in the order in which they stand there.

    >>> orders(['Send an e-mail to bo@example.com saying "Hi".'])[0].tool
    'send_email'
    """
    shown = [read_through(text) for text in texts]
    found = [order for text in [*shown, _joined(shown)] for order in _orders_in(text)]
    return list(dict.fromkeys(found))


def swaps(texts: Iterable[str]) -> list[tuple[str, str]]:
    """What is to be replaced in every call: pairs of old and new."""
    return [(old, new) for text in texts for new, old in SWAP.findall(read_through(text))]


def _orders_in(text: str) -> list[Order]:
    waiting = WHEN.search(text)
    if waiting:
        word, rest = waiting.groups()
        later = [Order(each.tool, each.arguments, word) for each in _orders_in(rest)]
        return _orders_in(text[: waiting.start()]) + later
    found: list[tuple[int, Order]] = []
    for pattern, name, fields in PHRASES:
        for match in re.finditer(pattern, text, re.IGNORECASE):
            if name:
                values = tuple(zip(fields, map(_value, match.groups()), strict=True))
                found.append((match.start(), Order(name, values)))
            else:
                found.append((match.start(), Order(match.group(1), ())))
    for call in parse(text).calls:
        place = text.find(call.name)
        found.append((place, Order(call.name, tuple(sorted(_hashable(call.arguments))))))
    return [order for _, order in sorted(found, key=lambda pair: pair[0])]


def _hashable(arguments: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        (k, v if isinstance(v, str | int | float) else json.dumps(v)) for k, v in arguments.items()
    ]


def _value(text: str) -> Any:
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text) else text.strip()


def _joined(texts: list[str]) -> str:
    """Parts that were split over several places, put together."""
    parts = {int(n): piece.strip() for text in texts for n, _, piece in PART.findall(text)}
    return "".join(parts[number] for number in sorted(parts))
