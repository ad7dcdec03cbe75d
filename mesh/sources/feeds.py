"""News from an RSS or Atom feed, parsed by feedparser, which reads nearly everything that publishers have called a feed.

A feed that is not well formed is read as far as it goes and gets a remark. Only a feed without a single entry is a gap.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from xml.sax import SAXParseException

import feedparser

from mesh.sources.fetch import Document, Fetcher, FetchError
from mesh.sources.identity import Traits, identify
from mesh.sources.item import Item, Kind, Reading, Remark
from mesh.sources.source import CONTENT_ERRORS
from mesh.sources.text import clean, html_to_text, safe_link
from mesh.sources.window import Window

MAX_ENTRIES = 500
"""The first of them are read; no feed has more news than that in a day."""


class FeedSource:
    """One feed, at an address or in a file."""

    def __init__(self, name: str, location: str | Path, fetcher: Fetcher) -> None:
        self.name = name
        self._location = location
        self._fetcher = fetcher

    def read(self, window: Window) -> Reading:
        """Return the entries of the window, newest first, then those that the feed does not date."""
        try:
            return read_feed(self.name, self._fetcher.read(self._location), window)
        except FetchError as error:
            return Reading.gap(self.name, str(error))


def read_feed(name: str, document: Document, window: Window) -> Reading:
    """Return what a fetched feed says within `window`. Bad content is a gap or a remark, never an exception."""
    try:
        feed = _parse(document)
    except CONTENT_ERRORS as error:
        return Reading.gap(name, f"cannot be read as a feed ({type(error).__name__})")
    if not feed.entries:
        return Reading.gap(name, f"no entries in it ({feed.trouble or 'it is empty'})")
    titled = [entry for entry in feed.entries if entry.title]
    keys = identify([Traits(entry.id, entry.link, entry.title, _day(entry)) for entry in titled])
    current = {key: _item(name, key, entry, window) for key, entry in zip(keys, titled, strict=True) if _is_new(entry, window)}
    return Reading(
        items=tuple(sorted(current.values(), key=_newest_first)),
        remarks=tuple(Remark(name, text) for text in _remarks(feed, titled, window)),
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    title: str
    id: str
    link: str
    published: dt.datetime | None
    updated: dt.datetime | None

    @property
    def latest(self) -> dt.datetime | None:
        """When the entry last changed, None where the feed does not say."""
        return max((moment for moment in (self.published, self.updated) if moment), default=None)


@dataclass(frozen=True, slots=True)
class _Feed:
    entries: list[_Entry]
    trouble: str | None


def _day(entry: _Entry) -> dt.date | None:
    first = entry.published or entry.updated
    return first.date() if first else None


def _is_new(entry: _Entry, window: Window) -> bool:
    """An undated entry is always shown, and labelled: nobody can say that it is old."""
    return entry.latest is None or window.since <= entry.latest <= window.until


def _item(source: str, key: str, entry: _Entry, window: Window) -> Item:
    changed = entry.published is not None and entry.published < window.since
    return Item(
        kind=Kind.NEWS,
        text=f"Update: {entry.title}" if changed else entry.title,
        source=source,
        key=key,
        at=entry.latest,
        link=safe_link(entry.link),
    )


def _newest_first(item: Item) -> tuple[bool, float]:
    return (False, -item.at.timestamp()) if isinstance(item.at, dt.datetime) else (True, 0.0)


def _remarks(feed: _Feed, titled: list[_Entry], window: Window) -> Iterable[str]:
    if feed.trouble:
        yield f"read as far as possible: {feed.trouble}"
    if nameless := len(feed.entries) - len(titled):
        yield f"entries without a title or a text, left out: {nameless}"
    if ahead := sum(entry.latest is not None and entry.latest > window.until for entry in titled):
        yield f"entries dated after this briefing, left out: {ahead}"


# feedparser has no types: from here on its dictionaries are read, and nowhere else.


def _parse(document: Document) -> _Feed:
    if not document.content.strip():
        return _Feed([], None)
    parsed = cast(
        "dict[str, Any]",
        feedparser.parse(mend_references(document.content), response_headers=document.headers),  # pyright: ignore[reportUnknownMemberType]
    )
    entries = cast("list[dict[str, Any]]", parsed["entries"][:MAX_ENTRIES])
    # As plain dictionaries, because feedparser's own answer for a missing key with the value of another.
    return _Feed([_entry({**entry}) for entry in entries], _trouble(parsed))


def _trouble(parsed: dict[str, Any]) -> str | None:
    """Return what feedparser found wrong, None for a feed without fault or one that only lacks the right media type."""
    fault = parsed.get("bozo_exception")
    if isinstance(fault, feedparser.NonXMLContentType) and parsed["entries"]:
        return None
    if isinstance(fault, feedparser.CharacterEncodingOverride):
        return f"{clean(str(fault))}; letters may be wrong"
    if isinstance(fault, SAXParseException):
        return f"not well-formed XML, line {fault.getLineNumber()}: {clean(fault.getMessage(), 120)}"
    if fault is not None:
        return clean(str(fault))
    return None if parsed.get("version") else "it is not a feed"


def _entry(raw: dict[str, Any]) -> _Entry:
    return _Entry(
        title=_plain(raw, "title") or _plain(raw, "summary"),
        id=clean(str(raw.get("id") or ""), 500),
        link=str(raw.get("link") or ""),
        published=_moment(raw.get("published_parsed")),
        updated=_moment(raw.get("updated_parsed")),
    )


def _plain(raw: dict[str, Any], key: str) -> str:
    text = str(raw.get(key) or "")
    detail = cast("dict[str, Any]", raw.get(f"{key}_detail") or {})
    return clean(html_to_text(text) if "html" in str(detail.get("type")) else text)


def _moment(parsed: time.struct_time | None) -> dt.datetime | None:
    """Return feedparser's UTC time tuple as a moment; one that no calendar has is as good as none."""
    if parsed is None:
        return None
    try:
        return dt.datetime.fromtimestamp(calendar.timegm(parsed), dt.UTC)
    except (OverflowError, ValueError, OSError):
        return None


_REFERENCES = re.compile(rb"(?:&#(?:x[0-9a-fA-F]+|[0-9]+);)+")
_REPLACEMENT = 0xFFFD


def mend_references(content: bytes) -> bytes:
    """Return `content` with no numeric reference to what is not a character.

    `&#xD83D;` is not XML and feedparser 6.0 raises for it. Two halves that belong together become the character that the
    publisher meant; a single one, or a number past the end of Unicode, becomes U+FFFD.
    """
    return _REFERENCES.sub(_mended, content)


def _mended(run: re.Match[bytes]) -> bytes:
    codes = [_code(number) for number in run[0].removeprefix(b"&#").removesuffix(b";").split(b";&#")]
    # UTF-16 is where halves come from, so it is what puts them together.
    halves = "".join(map(chr, codes)).encode("utf-16-le", "surrogatepass")
    whole = halves.decode("utf-16-le", "replace")
    return "".join(f"&#{ord(character)};" for character in whole).encode()


def _code(number: bytes) -> int:
    digits, base = (number[1:], 16) if number.startswith(b"x") else (number, 10)
    code = int(digits, base) if len(digits) <= 8 else _REPLACEMENT
    return code if code <= 0x10FFFF else _REPLACEMENT
