"""Foreign text in Markdown: it shows as it was written, and can form no heading, link, list or emphasis of its own."""

from __future__ import annotations

import re
from urllib.parse import quote

_INLINE = re.compile(r"[\\`*_\[\]<>~|]|&(?=#?\w+;)")
_LINE_START = re.compile(r"^(?:[#+\-=:]|\d{1,9}(?=[.)]))")
_URL_SAFE = "/:?#@!$&'*+,;=%-._~"


def escape(text: str) -> str:
    """Return one line of plain text as Markdown that renders as exactly that text."""
    inline = _INLINE.sub(r"\\\g<0>", text)
    return _LINE_START.sub(_escaped_start, inline)


def link(text: str, url: str) -> str:
    """Return plain text that leads to `url`, a web address."""
    return f"[{escape(text)}]({quote(url, safe=_URL_SAFE)})"


def _escaped_start(found: re.Match[str]) -> str:
    """A mark is escaped itself; of a number, the dot after it."""
    return f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}"
