"""The edge where foreign text comes in: whatever it was, one line of printable, encodable Unicode comes out."""

from __future__ import annotations

import unicodedata
from html.parser import HTMLParser

MAX_CHARACTERS = 280
"""Longer texts are cut at a word, with an ellipsis: a briefing is read at breakfast."""

MAX_COMBINING_MARKS = 8
"""Marks in a row on one letter. No script needs more; a page of them is somebody's joke."""

MAX_LINK_CHARACTERS = 2000
"""Longer addresses are left out: they are data, not places."""

REPLACEMENT = "\ufffd"
ELLIPSIS = "…"

# Characters that turn the direction of the text that follows them: a title could show as what it is not.
_DIRECTION_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SILENT_ELEMENTS = frozenset({"script", "style", "template"})
_INLINE_ELEMENTS = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "cite", "code", "em", "font", "i", "kbd", "mark", "q", "s", "small", "span", "strong"}
    | {"sub", "sup", "u", "var"}
)


def clean(text: str, limit: int = MAX_CHARACTERS) -> str:
    """Return `text` as one line of at most `limit` characters that can be encoded, printed and compared.

    Lone surrogates, control characters and direction overrides become U+FFFD; white space of all kinds becomes single
    blanks. Cleaning a clean text changes nothing.
    """
    # Cut long before the end, so that a megabyte in a title costs nothing; normalising shortens a text, seldom by much.
    visible = "".join(_visible(character) for character in text[: limit * 20])
    composed = unicodedata.normalize("NFC", visible)
    return shorten(" ".join(_without_piles(composed).split()), limit)


def shorten(text: str, limit: int) -> str:
    """Return `text` cut to `limit` characters, at a blank where there is one near the end."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    blank = head.rfind(" ", limit * 3 // 4)
    return (head[:blank] if blank > 0 else head).rstrip() + ELLIPSIS


def html_to_text(html: str) -> str:
    """Return what a reader sees of an HTML fragment. Broken markup gives what could be made out of it."""
    reader = _TextReader()
    try:
        reader.feed(html)
        reader.close()
    except AssertionError:
        # What the parser of the standard library raises for some malformed declarations ("<![nonsense").
        return html
    return "".join(reader.parts)


def safe_link(address: str) -> str | None:
    """Return a web address that can be shown as a link, None for anything else (scripts, local files, nonsense)."""
    candidate = address.strip()
    if len(candidate) > MAX_LINK_CHARACTERS or any(_visible(character) != character for character in candidate):
        return None
    return candidate if candidate.lower().startswith(("https://", "http://")) else None


def _visible(character: str) -> str:
    """Return the character itself, a blank for white space, U+FFFD for what cannot be shown."""
    if character.isspace():
        return " "
    if unicodedata.category(character) in ("Cc", "Cs") or character in _DIRECTION_OVERRIDES:
        return REPLACEMENT
    return character


def _without_piles(text: str) -> str:
    """Return `text` with no letter that carries more than `MAX_COMBINING_MARKS` marks."""
    kept: list[str] = []
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        if marks <= MAX_COMBINING_MARKS:
            kept.append(character)
    return "".join(kept)


class _TextReader(HTMLParser):
    """Collects the text of a fragment; elements that break the line leave a blank."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter an element."""
        self._silent += tag in _SILENT_ELEMENTS
        self._break(tag)

    def handle_endtag(self, tag: str) -> None:
        """Leave an element; an end without a beginning is ignored."""
        if self._silent and tag in _SILENT_ELEMENTS:
            self._silent -= 1
        self._break(tag)

    def handle_data(self, data: str) -> None:
        """Keep the text, unless it is code."""
        if not self._silent:
            self.parts.append(data)

    def _break(self, tag: str) -> None:
        if tag not in _INLINE_ELEMENTS:
            self.parts.append(" ")
