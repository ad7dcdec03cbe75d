"""From any text to the name of a file.

A name is what can be read of the text, and a hash of all of it: short enough for any disk, never outside its folder, and
different for texts that differ in case alone, also where the disk does not tell cases apart.
"""

import re
from hashlib import sha256

__all__ = ["file_name"]

_READABLE = 60
_UNSAFE = re.compile(r"[^a-z0-9_-]+")


def file_name(text: str) -> str:
    """The name for this text, without a suffix. Part of the stored format."""
    readable = _UNSAFE.sub("-", text.lower())[:_READABLE].strip("-")
    return f"{readable or 'x'}.{sha256(text.encode()).hexdigest()[:40]}"
