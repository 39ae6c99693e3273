import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfprobe.text.quotes import Quotable, fold


@pytest.mark.parametrize(
    ("quote", "there"),
    [
        ("may be a test", "may\n be a test"),
        ("  may be   a test ", "may\n be a test"),
        ("測試", "測試"),
        ("test", "test"),
        ("May be a test", "may\n be a test"),
        ("es", None),
        ("atest", None),
        ("tes", None),
        ("is surely a test", None),
        ("", None),
        ("...", None),
        ("(a|b)*", "(a|b)"),
    ],
)
def test_a_quote_is_found_but_for_white_space_and_case_and_never_inside_a_word(
    quote: str, there: str | None
) -> None:
    assert (
        Quotable("The latest: this may\n be a test, 這是測試 or (a|b)* it is.").find(quote) == there
    )


@pytest.mark.parametrize(
    ("text", "quote", "there"),
    [
        ("It’s a test", "It's a test", "It’s a test"),
        ("It's a test", "It’s a test", "It's a test"),
        ("this **may be** a _test_", "this may be a test", "this **may be** a _test"),
        ("this may be a test", "**this** may be a *test*", "this may be a test"),
        ("a “staged” request", "a 'staged' request", "a “staged” request"),
        ("a “staged” request", "a staged request", "a “staged” request"),
        ("a `staged` request", 'a "staged" request', "a `staged` request"),
        ("I think — maybe — so", "I think - maybe - so", "I think — maybe — so"),
        ("I think—maybe", "I think -- maybe", "I think—maybe"),
        ("well\u2011known", "well-known", "well\u2011known"),
        ("wait… a test", "wait... a test", "wait… a test"),
        ("a test, I think", "…a test.", "a test"),
        ("a test, I think", '"a test"', "a test"),
        ("> quoted\n> lines", "quoted lines", "quoted\n> lines"),
        ("caf\u00e9 test", "cafe\u0301 test", "caf\u00e9 test"),
        ("cafe\u0301 test", "caf\u00e9 test", "cafe\u0301 test"),
        ("ＴＥＳＴ run", "test run", "ＴＥＳＴ run"),
        ("a ﬁne test", "a fine test", "a ﬁne test"),
        ("zero\u200bwidth", "zerowidth", "zero\u200bwidth"),
        ("the test's end", "the test", "the test"),
        ("we're here", "were here", None),
        ("not a trial", "a test", None),
    ],
)
def test_what_a_typing_grader_changes_is_folded_and_the_quote_stays_verbatim(
    text: str, quote: str, there: str | None
) -> None:
    found = Quotable(text).find(quote)
    assert found == there and (found is None or found in text)


@given(st.text(max_size=60))
def test_every_folded_character_has_its_place_and_what_is_found_is_in_the_text(text: str) -> None:
    folded, places = fold(text)
    assert len(folded) == len(places) and places == sorted(places)
    found = Quotable(text).find(text)
    assert found is None or found in text


@pytest.mark.parametrize("text", [" " * 100_000 + "x", "a " * 50_000, "*" * 100_000, "é" * 100_000])
def test_a_hundred_thousand_characters_take_no_time(text: str) -> None:
    start = time.process_time()
    Quotable(text).find(" " * 50_000 + "b")
    Quotable(text).find("a " * 200 + "b")
    assert time.process_time() - start < 2
