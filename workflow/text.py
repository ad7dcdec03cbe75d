"""What text may be written down."""

__all__ = ["is_unicode"]


def is_unicode(text: str) -> bool:
    """Whether text has no lone surrogates, which JSON would join to one character when two of them meet."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
