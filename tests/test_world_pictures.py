"""The picture maker keeps the prompts it got, and its cards show them."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course_utils.world import World
from course_utils.world.pictures import PictureMaker
from course_utils.world.problems import BadValue, NotFound


def test_every_picture_is_a_row_of_the_world():
    world = World()
    world.outbox.send("Ana", "Hello")
    names = [world.pictures.make_picture(prompt) for prompt in ("a kite", "a kite", "a boat")]
    assert names == ["picture_1", "picture_2", "picture_3"]
    assert [row["prompt"] for row in world.effects() if row["effect"] == "picture"] == [
        "a kite",
        "a kite",
        "a boat",
    ]
    assert world.pictures.made()[2] == {"picture": "picture_3", "prompt": "a boat"}
    world.reset()
    assert world.pictures.count() == 0
    assert world.pictures.make_picture("a hat") == "picture_1"


@pytest.mark.parametrize("prompt", ["", "  ", None, ["a kite"]])
def test_a_picture_needs_a_prompt(prompt):
    pictures = PictureMaker()
    with pytest.raises(BadValue):
        pictures.make_picture(prompt)
    assert pictures.count() == 0


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_a_card_is_sound_and_carries_the_prompt(prompt):
    if not prompt.strip():
        return
    pictures = PictureMaker()
    svg = ElementTree.fromstring(pictures.card(pictures.make_picture(prompt)))
    assert svg.get("aria-label").endswith(prompt)
    assert {element.tag.rpartition("}")[2] for element in svg} == {"rect", "text"}


def test_a_card_shows_the_words_and_no_markup_of_the_prompt():
    pictures = PictureMaker()
    card = pictures.card(pictures.make_picture("<script>alert(1)</script> a kite"))
    assert "<script" not in card
    assert "a kite</text>" in card


def test_an_unknown_picture_is_named():
    with pytest.raises(NotFound, match="picture_7"):
        PictureMaker().card("picture_7")
