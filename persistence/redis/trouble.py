"""What trouble with a server says about the command: refused for good, not done yet, or unknown whether it took effect."""

from collections.abc import Iterator
from enum import Enum

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterError,
    ConnectionError,  # noqa: A004
    MaxConnectionsError,
    NoPermissionError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    SlotNotCoveredError,
    TimeoutError,  # noqa: A004
    TryAgainError,
)

__all__ = ["NOT_LOCAL", "TROUBLE", "Effect", "effect_of", "is_refusal", "root_of", "words_of"]

TROUBLE = (RedisError, RedisClusterException, OSError)
"""Everything that the client library raises for trouble with a server."""

NOT_LOCAL = "Script attempted to access a non local key"
"""A node that gives a slot away has not all the keys any more. Our scripts meet this before their first write."""

_FOR_GOOD = (AuthenticationError, AuthorizationError)
_NOT_YET = (BusyLoadingError, MaxConnectionsError, ReadOnlyError, ClusterError, TryAgainError, SlotNotCoveredError)
_NOT_YET_WORDS = ("BUSY ", NOT_LOCAL)
_UNKNOWN = (ConnectionError, TimeoutError, OSError)
_NO_CLUSTER = "Cluster mode is not enabled"


class Effect(Enum):
    """What is known of the command."""

    REFUSED = "nothing was done, and asking again will not help"
    NOT_YET = "nothing was done, and asking again may help"
    UNKNOWN = "it may have taken effect"


def effect_of(trouble: Exception) -> Effect:
    """What trouble says about the command that met it."""
    root = root_of(trouble)
    if isinstance(root, _FOR_GOOD):
        return Effect.REFUSED
    if isinstance(root, _NOT_YET) or any(is_refusal(root, words) for words in _NOT_YET_WORDS):
        return Effect.NOT_YET
    if isinstance(root, _UNKNOWN):
        return Effect.UNKNOWN
    return _of_cluster(root) if isinstance(root, RedisClusterException) else Effect.REFUSED


def root_of(trouble: Exception) -> Exception:
    """What lies behind the words of a client of a cluster, which calls a refused password a node that cannot be reached."""
    if not isinstance(trouble, RedisClusterException):
        return trouble
    refusals = [cause for cause in _causes(trouble) if isinstance(cause, (*_FOR_GOOD, NoPermissionError))]
    without = [cause for cause in _causes(trouble) if _NO_CLUSTER in str(cause) and cause is not trouble]
    return next(iter([*refusals, *without]), trouble)


def words_of(trouble: Exception) -> str:
    """The server's own words, without those that the library puts before them."""
    return str(trouble).rpartition("of pipeline caused error: ")[2].removeprefix("ERR ")


def _of_cluster(trouble: RedisClusterException) -> Effect:
    """A client of a cluster looks for the nodes anew after trouble on the line, and may lose that trouble in its own."""
    refused = _NO_CLUSTER in str(trouble) or "same key slot" in str(trouble)
    return Effect.REFUSED if refused else Effect.UNKNOWN


def _causes(trouble: BaseException) -> Iterator[Exception]:
    cause: BaseException | None = trouble
    while isinstance(cause, Exception):
        yield cause
        cause = cause.__cause__ or cause.__context__


def is_refusal(trouble: Exception, words: str) -> bool:
    """Whether the server refused with these words."""
    return isinstance(trouble, ResponseError) and words_of(trouble).startswith(words)
