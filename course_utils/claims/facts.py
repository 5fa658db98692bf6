"""What a text claims: numbers with units, names, words of state, each with what it is about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# A unit as it is written -> the unit. Without one of these a number has no unit.
UNITS = {
    "°c": "°C", "° c": "°C", "degrees celsius": "°C", "degrees c": "°C", "celsius": "°C",
    "ºc": "°C", "°": "°C", "degrees": "°C", "degree": "°C",
    "°f": "°F", "° f": "°F", "degrees fahrenheit": "°F", "fahrenheit": "°F",
    "%": "%", "percent": "%", "per cent": "%",
    "€": "€", "eur": "€", "euro": "€", "euros": "€", "$": "$", "usd": "$", "dollars": "$",
    "£": "£", "gbp": "£", "pounds": "£",
    "km/h": "km/h", "kmh": "km/h", "kph": "km/h", "mph": "mph", "m/s": "m/s", "hpa": "hPa",
    "km": "km", "kilometres": "km", "kilometers": "km", "miles": "mile", "mile": "mile",
    "mm": "mm", "cm": "cm", "m": "m", "metres": "m", "meters": "m", "kg": "kg", "tonnes": "t",
}  # fmt: skip
# A label before the number (`"temp": 13`) that gives it a unit.
LABELS = {"temp": "°C", "celsius": "°C", "wind": "km/h", "humidity": "%", "eur": "€", "usd": "$"}
WRITTEN = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
NUMBER = re.compile(
    rf"(?P<before>[€$£])?(?P<value>(?<![\w.,])[+\-−]?\d+(?:,\d{{3}})*(?:\.\d+)?)"
    rf"(?:\s?(?P<unit>{WRITTEN})(?![A-Za-z]))?",
    re.I,
)
DEGREES = re.compile(r"[°º]\s?[CF]\b")  # the letter is no name
LABEL = re.compile(r"(\w+)[\"']?\s*[:=]\s*[\"']?$")
JOINED = re.compile(r"\s*(?:-|–|—|to|and|or|\.\.)\s*(?:about\s*)?")
BULLET = re.compile(r"(?m)^\s*(?:\d+[.)]|[-*•])\s+")
URL = re.compile(r"https?://\S+")
CODED = re.compile(r"\b(?:\d{4}-\d\d-\d\d|\d{1,2}:\d\d(?::\d\d)?|[A-Za-z]+-\d[\w-]*)\b")
SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")

NAME = re.compile(r"\b[A-ZÀ-ÞА-ЯЁ][\w’']*(?:[ -](?=[A-ZÀ-ÞА-ЯЁ0-9])[\w’']+)*")
DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
MONTHS = (
    "january february march april may june july august september october november december"
).split()
NO_NAMES = set(
    "i a an the it its this that these those there here he she they we you my our your yes no not "
    "none ok okay sorry true false in on at of to for from by with and or but if as is are was "
    "were be am pm celsius fahrenheit eur usd python error note based current currently according "
    "please thought final answer however unfortunately what which who when where how between over "
    "under after before during since until while also only most many more less both each "
    "every".split()
)
# Words that begin a sentence or a title more often than they name anything.
GENERIC = set(
    "now today temperature weather wind height price balance status state total population speed "
    "account order invoice around about approximately both all some page station report mostly "
    "partly light heavy partially yesterday tomorrow tonight sky skies page title result".split()
)
# Words that say at which time or in which sense a value holds.
QUALIFIERS = re.compile(
    r"\b(tomorrow|tonight|yesterday|morning|afternoon|evening|night|overnight|later|forecast|"
    r"expected|high|low|highs|lows|max|maximum|min|minimum|average|mean|record|feels|earlier|"
    rf"last|next|past|dew|humidity|water|sea|{'|'.join(DAYS)}|{'|'.join(MONTHS)})(?![A-Za-z])",
    re.I,
)
# Words of state; those of one line mean the same, those of one family exclude each other.
STATES = {
    "sky": {
        "clear": r"clear(?: sk(?:y|ies))?|sunny|sunshine|cloudless",
        "partly cloudy": r"part(?:ly|ially) (?:cloudy|sunny)|scattered clouds|some clouds",
        "cloudy": r"cloudy|overcast|clouds",
        "rain": r"rain(?:y|ing)?|showers|drizzle",
        "snow": r"snow(?:y|ing)?|sleet",
        "fog": r"fog(?:gy)?|mist(?:y)?",
        "storm": r"storm(?:y|s)?|thunderstorms?",
    },
    "payment": {"paid": r"paid", "unpaid": r"unpaid|not paid|outstanding", "overdue": r"overdue"},
    "delivery": {
        "shipped": r"shipped|in transit|dispatched",
        "delivered": r"delivered",
        "cancelled": r"cancell?ed",
        "pending": r"pending|processing",
    },
    "stock": {"in stock": r"in stock|available", "sold out": r"out of stock|sold out|unavailable"},
}
ANY_STATE = re.compile("|".join(p for states in STATES.values() for p in states.values()))
NEGATION = re.compile(r"(?:\b(?:no|not|never|without|neither|nor)|n't)\s+(?:\w+\s+)?$", re.I)


@dataclass(frozen=True)
class Fact:
    """One thing that a text says. `kind` is a unit, "" (a bare number), "name" or a family of
    states; `about` are the names that it is about, `when` its qualifiers."""

    kind: str
    value: str
    text: str
    about: frozenset[str] = frozenset()
    when: frozenset[str] = frozenset()

    @property
    def number(self) -> float | None:
        return None if self.kind in ("name", *STATES) else float(self.value)

    def same_value(self, other: Fact) -> bool:
        """Whether two values agree, numbers as far as the coarser one is written out."""
        if self.number is None or other.number is None:
            return self.value == other.value
        places = min(len(text.partition(".")[2]) for text in (self.value, other.value))
        return abs(self.number - other.number) <= 0.5 * 10**-places


def words(text: str) -> set[str]:
    """The words of a text, in lower case, without a possessive 's."""
    found = re.findall(r"[\w]+(?:['’]\w+)?", text.casefold())
    return {word.removesuffix("'s").removesuffix("’s") for word in found}


def names(text: str, skip_first: bool = True) -> list[str]:
    """The names in a text: runs of capitalised words, and coded things (dates, ids).

    The first word of a sentence is capitalised anyway and does not count; weekdays and months do.

    >>> names("The car is an Aston Martin DB5. Paris is far.")
    ['Aston Martin DB5']
    """
    found = [match.group() for match in CODED.finditer(text)]
    text = DEGREES.sub(" ", text)
    text = CODED.sub(" ", URL.sub(" ", BULLET.sub("", text)))
    for sentence in SENTENCE.split(text):
        begin = len(sentence) - len(sentence.lstrip(" \"'(*#>[“«"))
        for match in NAME.finditer(sentence):
            parts = match.group().split(" ")
            starts = match.start() <= begin and skip_first
            if starts and not words(parts[0]) & {*DAYS, *MONTHS} and not re.search(r"\d", parts[0]):
                parts = parts[1:]
            parts = [part for part in parts if not words(part) <= NO_NAMES]
            if parts:
                found.append(" ".join(parts).strip("'’"))
    return found


def facts(text: str, about: frozenset[str] = frozenset()) -> list[Fact]:
    """Everything that a text says: numbers, states and names.

    `about` is what a sentence is about that names nothing itself.

    >>> [(fact.kind, fact.value) for fact in facts("Clear sky, around 13-16°C")]
    [('°C', '13'), ('°C', '16'), ('sky', 'clear')]
    """
    clean = CODED.sub(" ", URL.sub(" ", BULLET.sub("", text)))
    found: list[Fact] = []
    for sentence in SENTENCE.split(clean):
        found += _numbers(sentence, about)
        found += _states(sentence, about)
    return found + [Fact("name", name, name) for name in dict.fromkeys(names(text))]


def subjects(text: str) -> frozenset[str]:
    """The words of the names in a text that something can be about (no times), first word too."""
    named = {word for name in names(text, skip_first=False) for word in words(name)}
    return frozenset(
        word
        for word in named - {*DAYS, *MONTHS} - NO_NAMES - GENERIC
        if not ANY_STATE.fullmatch(word)
    )


def _numbers(sentence: str, about: frozenset[str]) -> Iterator[Fact]:
    matches = list(NUMBER.finditer(sentence))
    units = [_unit(sentence, match) for match in matches]
    joined = [
        bool(JOINED.fullmatch(sentence[one.end() : other.start()]))
        for one, other in zip(matches, matches[1:], strict=False)
    ]
    for place in reversed(range(len(joined))):  # "13-16°C": both have the unit
        if joined[place] and not units[place]:
            units[place] = units[place + 1]
    several = any(
        units[place] == units[place + 1] and not joined[place] for place in range(len(joined))
    )
    last, begin = about, 0
    for match, unit in zip(matches, units, strict=True):
        before = sentence[begin : match.start()]
        # With several values of a kind, a value is about the names since the one before it.
        near = subjects(before) or (last if begin else None) if several else None
        last = near or subjects(sentence) or about
        ahead = re.split(r"[,;)]", sentence[match.end() :], maxsplit=1)[0]
        when = QUALIFIERS.findall(before.replace("_", " ") + " " + ahead)
        value = match["value"].replace(",", "").replace("−", "-").lstrip("+")
        inherited = unit and not match["unit"] and not match["before"]
        text = f"{match.group()} {unit}" if inherited else match.group().strip()
        yield Fact(unit, value, text, last, frozenset(map(str.casefold, when)))
        begin = match.end()


def _unit(sentence: str, match: re.Match[str]) -> str:
    written = (match["before"] or match["unit"] or "").casefold()
    if written:
        return UNITS[written]
    label = LABEL.search(sentence[: match.start()])
    parts = label.group(1).casefold() if label else ""
    return next((unit for part, unit in LABELS.items() if part in parts), "")


def _states(sentence: str, about: frozenset[str]) -> Iterator[Fact]:
    taken: list[range] = []
    for family, states in STATES.items():
        for state, pattern in sorted(states.items(), key=lambda item: -len(item[0])):
            for match in re.finditer(rf"\b(?:{pattern})\b", sentence, re.I):
                if any(match.start() in span for span in taken):
                    continue
                taken.append(range(*match.span()))
                if NEGATION.search(sentence[: match.start()]):
                    continue
                when = frozenset(map(str.casefold, QUALIFIERS.findall(sentence)))
                yield Fact(family, state, match.group(), subjects(sentence) or about, when)
