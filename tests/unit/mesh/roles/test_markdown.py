"""Foreign text shows as it was written, and forms nothing of its own. The judge is a Markdown parser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from mesh.roles.markdown import escape, link
from mesh.sources.text import clean

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
MARKED_UP = st.text(st.sampled_from("#*_`[]()<>!&;-+=|~\\ 1.:ab\"'/\n"), max_size=60)


def blocks(markdown: str) -> list[str]:
    return [token.type for token in PARSER.parse(markdown)]


def inline(markdown: str) -> list[Token]:
    [only] = [token for token in PARSER.parse(markdown) if token.type == "inline"]
    return only.children or []


@given(MARKED_UP | st.text(max_size=60))
def test_an_escaped_line_is_a_bullet_with_exactly_that_text(text: str) -> None:
    shown = clean(text) or "x"
    bullet = f"- {escape(shown)}"

    assert blocks(bullet) == [
        *("bullet_list_open", "list_item_open", "paragraph_open", "inline"),
        *("paragraph_close", "list_item_close", "bullet_list_close"),
    ]
    assert {token.type for token in inline(bullet)} <= {"text", "text_special"}
    assert "".join(token.content for token in inline(bullet)) == shown


@given(MARKED_UP)
def test_an_escaped_line_stays_inside_emphasis(text: str) -> None:
    shown = clean(text) or "x"
    tokens = inline(f"a *{escape(shown)}, b*")

    assert [token.type for token in tokens if not token.type.startswith("text")] == ["em_open", "em_close"]
    assert "".join(token.content for token in tokens) == f"a {shown}, b"


@given(MARKED_UP, st.text(st.sampled_from("()[]<>\\ \"'`*_ü%&?#/x"), max_size=30))
def test_a_link_is_one_link_with_exactly_that_text(text: str, tail: str) -> None:
    shown = clean(text) or "x"
    tokens = inline(link(shown, "https://a.example/" + tail.strip()))

    assert [token.type for token in tokens if not token.type.startswith("text")] == ["link_open", "link_close"]
    assert "".join(token.content for token in tokens) == shown
    assert str(tokens[0].attrs["href"]).startswith("https://a.example/")


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("## Needs attention", "\\## Needs attention"),
        ("- [ ] pay me", "\\- \\[ \\] pay me"),
        ("1. first", "1\\. first"),
        ("R&D costs 3.5 %", "R&D costs 3.5 %"),
        ("&copy; <b>", "\\&copy; \\<b\\>"),
        ("snake_case *star*", "snake\\_case \\*star\\*"),
    ],
)
def test_escaping_touches_only_what_has_a_meaning(text: str, escaped: str) -> None:
    assert escape(text) == escaped
