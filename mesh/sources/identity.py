"""Which entries of a feed are the same entry, today and tomorrow.

Publishers leave ids out, give every entry the same one, or move from http to https and change them all. So an id counts
only where it is unique in its feed; then the link does; what is left is known by its title and day.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit


class Traits(NamedTuple):
    """What an entry can be known by; empty texts where the feed says nothing."""

    id: str
    link: str
    title: str
    day: dt.date | None


def identify(entries: Sequence[Traits]) -> list[str]:
    """Return a key for each entry. Two entries share one only if nothing tells them apart."""
    ids = Counter(canonical(entry.id) for entry in _distinct(entries))
    links = Counter(canonical(entry.link) for entry in _distinct(entries))
    return [_key(entry, ids, links) for entry in entries]


def canonical(address: str) -> str:
    """Return an address without what changes while the page stays the same: scheme, case of the host, campaign tags.

    What is not an address is returned as it is.
    """
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return address.strip()
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return address.strip()
    query = urlencode([pair for pair in parse_qsl(parts.query, keep_blank_values=True) if not pair[0].startswith("utm_")])
    return parts.netloc.lower() + parts.path.rstrip("/") + (f"?{query}" if query else "")


def _distinct(entries: Sequence[Traits]) -> list[Traits]:
    """Return the entries without exact repeats, which must not make their id look shared."""
    return list(dict.fromkeys(entries))


def _key(entry: Traits, ids: Counter[str], links: Counter[str]) -> str:
    if entry.id and ids[canonical(entry.id)] == 1:
        return f"id:{canonical(entry.id)}"
    if entry.link and links[canonical(entry.link)] == 1:
        return f"link:{canonical(entry.link)}"
    return f"title:{entry.day or 'undated'}:{entry.title}"
