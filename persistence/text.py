"""What partitions, keys, names and logs may be called: any text that UTF-8 can write, whatever the store.

Python's text may hold half of a surrogate pair, which is no character. Each store would meet it at another place, one of
them after its first write; so it is refused here, before a store is asked.
"""

from collections.abc import Sequence

__all__ = ["require_place", "require_text"]


def require_text(what: str, *texts: str | None) -> None:
    """Raise ValueError, calling the text ``what``, for one that is not Unicode. None is passed over."""
    for text in texts:
        try:
            (text or "").encode()
        except UnicodeEncodeError:
            raise ValueError(f"{what} {text!r:.80} holds half of a surrogate pair, which is no character: remove it") from None


def require_place(partition: str, *keys: str, append: Sequence[tuple[str, bytes]] = ()) -> None:
    """Raise ValueError for a partition, a key or the name of a log that is not Unicode."""
    require_text("the partition", partition)
    require_text("the key", *keys)
    require_text("the log", *(log for log, _ in append))
