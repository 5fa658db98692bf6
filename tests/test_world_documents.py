"""Quotations are copied from the pages, never composed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from course_utils.errors import CourseError
from course_utils.world.documents import Documents, Page
from course_utils.world.problems import BadValue, NotFound

CLASSICS = Documents("classics")


@pytest.mark.parametrize("collection", ["classics", "web", "wide_web"])
def test_every_sentence_stands_in_its_page(collection):
    for page in Documents(collection).pages:
        assert page.sentences()
        assert "".join(page.sentences()).replace(" ", "") == "".join(page.text.split())
        assert all(sentence in page.text for sentence in page.sentences())


@pytest.mark.parametrize(
    ("words", "page", "start"),
    [
        ("the opening of Pride and Prejudice", "pride_and_prejudice", "It is a truth universally"),
        ("first sentence of Alice in Wonderland", "alice", "Alice was beginning to get very tired"),
        ("Dickens best of times", "two_cities", "It was the best of times"),
        ("Moby Dick first line", "moby_dick", "Call me Ishmael."),
        ("government of the people", "gettysburg", "It is rather for us"),
        ("great Kansas prairies", "wizard_of_oz", "Dorothy lived in the midst"),
        ("decent respect to the opinions of mankind", "declaration", "When in the Course"),
    ],
)
def test_a_quote_is_found_by_its_words_or_its_title(words, page, start):
    found = CLASSICS.find_quote(words)
    assert found["page"] == page
    assert found["quote"].startswith(start)
    assert CLASSICS.is_exact(found["quote"])


def test_the_place_of_a_quote_is_named():
    found = CLASSICS.find_quote("rightful property of their daughters")
    assert (found["title"], found["author"]) == ("Pride and Prejudice", "Jane Austen")
    assert found["place"] == "Chapter 1, sentence 2"


def test_words_that_stand_nowhere_are_not_found():
    with pytest.raises(NotFound, match="qwerty"):
        CLASSICS.find_quote("qwerty")


@given(st.text(max_size=60))
@settings(deadline=None)
def test_any_words_give_an_exact_sentence_or_not_found(words):
    try:
        found = CLASSICS.find_quote(words)
    except NotFound:
        return
    page = next(page for page in CLASSICS.pages if page.name == found["page"])
    assert found["quote"] in page.text


def test_exact_means_word_for_word_whatever_the_quotation_marks():
    assert CLASSICS.is_exact("\u201cand what is the use of a book,\u201d thought\nAlice")
    assert CLASSICS.is_exact("Some years ago\u2014never mind how long precisely\u2014having")
    assert not CLASSICS.is_exact("It is a truth universally known")
    assert not CLASSICS.is_exact("")


def test_search_ranks_the_page_about_it_first_and_is_repeatable():
    web = Documents("web")
    hits = web.search("pancake recipe with eggs and milk", k=2)
    assert [hit["page"] for hit in hits][0] == "recipe_pancakes"
    assert hits == Documents("web").search("pancake recipe with eggs and milk", k=2)
    assert web.search("capital river", k=9)[0]["page"].startswith("city_")
    assert web.search("qwerty") == []


def test_search_prints_nothing(capfd):
    Documents("web").search("Paris museums")
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")


@pytest.mark.parametrize("k", [0, -1, "3", True])
def test_k_must_be_a_number_of_pages(k):
    with pytest.raises(BadValue, match="k must"):
        CLASSICS.search("whale", k)


def test_an_unknown_collection_names_the_known_ones():
    with pytest.raises(CourseError, match="classics, web"):
        Documents("newspapers")


def test_a_page_without_title_is_named(tmp_path):
    (tmp_path / "bad.md").write_text("just text")
    with pytest.raises(CourseError, match="bad.md"):
        Documents(tmp_path)


def test_titles_and_initials_do_not_end_a_sentence():
    page = Page("p", "T", "A", "", "", 'Mr. L. Baum met Mrs. Low. "Who?" asked Dr. May. He left.')
    assert page.sentences() == ["Mr. L. Baum met Mrs. Low.", '"Who?" asked Dr. May.', "He left."]


def test_the_wide_web_misleads_a_search_as_the_published_run_was_misled():
    wide = Documents("wide_web")
    first = [hit["page"] for hit in wide.search("current weather in Paris")]
    assert all(page.startswith("forum_current_") for page in first)
    second = wide.search("current weather in Paris, France", k=2)
    assert {hit["page"] for hit in second} == {"weather_riverside", "weather_skyline"}
    assert any("13 °C and partly cloudy" in hit["text"] for hit in second)
    assert any("Clear, +16 °C" in hit["text"] for hit in second)
    car = wide.search("car James Bond latest movie", k=1)[0]["text"]
    assert "Aston Martin DB5" in car
