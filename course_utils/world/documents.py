"""Search over stored pages, and quotation that is exact because it is copied, not remembered.

Pages are text files in `data/world/pages/<collection>/`: a few header lines (`title:`, `author:`,
`year:`, `part:`), an empty line, then paragraphs of one line each. Ranking is BM25 (Robertson and
Zaragoza, 2009, "The Probabilistic Relevance Framework") by the library bm25s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.errors import CourseError
from course_utils.world.problems import BadValue, NotFound

PAGES = Path(__file__).parents[2] / "data" / "world" / "pages"
# A sentence ends at . ! or ? (and a closing quotation mark), before a capital letter or quotation.
SENTENCE_END = re.compile(r"(?<=[.!?])(?<!Mr\.)(?<!Mrs\.)(?<!Dr\.)(?<!\b[A-Z]\.) (?=[A-Z\"])")


@dataclass(frozen=True)
class Page:
    """One stored page: its name, its header fields, its text."""

    name: str
    title: str
    author: str
    year: str
    part: str
    text: str

    def sentences(self) -> list[str]:
        """Return the sentences of the page, each exactly as it stands in `text`.

        >>> Page("p", "T", "A", "2026", "", "One. Two!").sentences()
        ['One.', 'Two!']
        """
        lines = [line for line in self.text.splitlines() if line.strip()]
        return [sentence for line in lines for sentence in SENTENCE_END.split(line)]


class Documents:
    """A collection of pages that can be searched and quoted. Its methods are ready to be tools.

    `collection` is a folder of `data/world/pages` ("classics", "web", "wide_web") or any folder
    of pages.

    >>> Documents("classics").find_quote("truth universally acknowledged")["title"]
    'Pride and Prejudice'
    """

    def __init__(self, collection: str | Path = "classics") -> None:
        folder = PAGES / collection
        files = sorted([*folder.glob("*.txt"), *folder.glob("*.md")], key=lambda file: file.name)
        if not files:
            known = ", ".join(sorted(entry.name for entry in PAGES.iterdir() if entry.is_dir()))
            raise CourseError(f"No pages in the collection {str(collection)!r}. Known: {known}.")
        self.pages = [_read_page(file) for file in files]
        self._places = [
            (page, number, sentence)
            for page in self.pages
            for number, sentence in enumerate(page.sentences(), start=1)
        ]
        self._page_index = _Index(
            [f"{page.title} {page.author} {page.text}" for page in self.pages]
        )
        self._sentence_index = _Index([_sentence_key(*place) for place in self._places])

    def search(self, query: str, k: int = 3) -> list[dict[str, Any]]:
        """Search the pages and return the best ones, with their text.

        Args:
            query: Words to look for.
            k: How many pages to return at most.
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise BadValue(f"k must be a whole number of 1 or more, not {k!r}.", code="bad_k")
        found = self._page_index.best(query)[:k]
        pages = [self.pages[position] for position in found]
        return [{"page": page.name, "title": page.title, "text": page.text} for page in pages]

    def find_quote(self, words: str) -> dict[str, Any]:
        """Find the sentence that fits some words best and return it word for word, with its place.

        Args:
            words: Words of the sentence, or the title or author of the text it comes from.
        """
        found = self._sentence_index.best(words)
        if not found:
            raise NotFound(
                f"No stored sentence contains any of the words {words!r}.",
                code="quote_not_found",
                hint="Try other words, or the title of the text.",
            )
        return _quote(*self._places[found[0]])

    def is_exact(self, quotation: str) -> bool:
        """Say whether a quotation stands word for word in a stored page.

        Line breaks and the shape of quotation marks and dashes do not count.

        Args:
            quotation: The words to check.
        """
        wanted = _plain(quotation)
        return bool(wanted) and any(wanted in _plain(page.text) for page in self.pages)


class _Index:
    """BM25 over short texts; equal scores keep the order of the texts, so results never vary."""

    def __init__(self, texts: list[str]) -> None:
        import bm25s

        self._bm25 = bm25s.BM25()
        self._bm25.index([_words(text) for text in texts], show_progress=False)

    def best(self, query: str) -> list[int]:
        """Return the positions of the texts that share a word with the query, best first."""
        known = [word for word in _words(query) if word in self._bm25.vocab_dict]
        if not known:
            return []
        scores = self._bm25.get_scores(known).tolist()
        order = sorted(range(len(scores)), key=lambda position: -round(scores[position], 5))
        return [position for position in order if scores[position] > 0]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", str(text).casefold())


def _sentence_key(page: Page, number: int, sentence: str) -> str:
    # People ask for "the opening of ..." as often as for words of the sentence itself.
    place = "first sentence opening line beginning" if number == 1 else ""
    return f"{sentence} {page.title} {page.author} {place}"


def _quote(page: Page, number: int, sentence: str) -> dict[str, Any]:
    place = ", ".join(part for part in (page.part, f"sentence {number}") if part)
    return {
        "quote": sentence,
        "title": page.title,
        "author": page.author,
        "year": page.year,
        "place": place,
        "page": page.name,
    }


def _plain(text: str) -> str:
    text = re.sub("[\u201c\u201d]", '"', str(text))
    text = re.sub("[\u2018\u2019]", "'", text)
    text = re.sub(r"\s*(--|\u2014|\u2013)\s*", " -- ", text)
    return re.sub(r"\s+", " ", text).strip()


def _read_page(file: Path) -> Page:
    header, _, text = file.read_text(encoding="utf-8").partition("\n\n")
    fields = dict(line.split(": ", 1) for line in header.splitlines() if ": " in line)
    if "title" not in fields or not text.strip():
        raise CourseError(
            f"The page {file.name} needs header lines (title: ...), an empty line and a text."
        )
    known = {name: fields.get(name, "") for name in ("title", "author", "year", "part")}
    return Page(name=file.stem, text=text.strip(), **known)
