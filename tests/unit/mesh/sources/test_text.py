"""Foreign text at the edge (the class of faults G6)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.sources.text import MAX_CHARACTERS, clean, html_to_text, safe_link

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=400)


@given(ANY_TEXT)
def test_clean_text_can_be_encoded_and_is_one_short_line(text: str) -> None:
    cleaned = clean(text)

    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    assert len(cleaned.splitlines()) <= 1
    assert len(cleaned) <= MAX_CHARACTERS
    assert not any(unicodedata.category(character) == "Cc" for character in cleaned)


@given(ANY_TEXT)
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(st.text(st.sampled_from("ab\u0301\u0327\u0345\ud83d \u202e\u0000é"), max_size=60), st.integers(1, 30))
def test_cleaning_to_a_limit_twice_is_cleaning_once(text: str, limit: int) -> None:
    assert clean(clean(text, limit), limit) == clean(text, limit)
    assert len(clean(text, limit)) <= limit


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("a\ud83db", "a\ufffdb"),
        ("nul\x00", "nul\ufffd"),
        ("abc\u202edef", "abc\ufffddef"),
        ("two\nlines\u2028and\ttabs\xa0", "two lines and tabs"),
        ("e\u0301", "é"),
        ("שלום\u200f!", "שלום\u200f!"),
    ],
)
def test_each_kind_of_unprintable_text_has_its_replacement(foreign: str, shown: str) -> None:
    assert clean(foreign) == shown


def test_a_letter_under_ten_thousand_marks_keeps_a_few_of_them() -> None:
    assert len(clean("e" + "\u0323\u0300" * 5000)) < 12


def test_a_long_text_is_cut_at_a_word() -> None:
    assert clean("word " * 100, limit=23) == "word word word word…"


def test_a_megabyte_without_a_blank_is_cut_all_the_same() -> None:
    assert clean("x" * 1_000_000) == "x" * (MAX_CHARACTERS - 1) + "…"


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("Fish &amp; <b>chips</b>", "Fish & chips"),
        ("<p>one</p><p>two</p>three<br>four", "one two three four"),
        ("seen<script>alert('never')</script>", "seen"),
        ("un<b>broken", "unbroken"),
        ("A&rsquo;s", "A\u2019s"),
        ("a < b", "a < b"),
    ],
)
def test_html_becomes_what_a_reader_sees(html: str, shown: str) -> None:
    assert clean(html_to_text(html)) == shown


@given(st.text(st.sampled_from("<>![]-&;#xa1/\"'= \n"), max_size=80))
def test_no_broken_markup_raises(html: str) -> None:
    assert isinstance(html_to_text(html), str)


@pytest.mark.parametrize("address", ["javascript:alert(1)", "file:///etc/passwd", "https://a\nb", "", "x" * 3000])
def test_only_web_addresses_become_links(address: str) -> None:
    assert safe_link(address) is None


def test_a_web_address_stays_as_it_is() -> None:
    assert safe_link(" https://a.example/ü?q=1#x ") == "https://a.example/ü?q=1#x"
