"""What the refusal of a Redis or Valkey server means, in words that say what to do."""

from redis.exceptions import (
    AuthenticationError,
    ClusterDownError,
    ClusterError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    SlotNotCoveredError,
    TryAgainError,
)

from persistence.redis.trouble import NOT_LOCAL, is_refusal, words_of

__all__ = ["advice", "lacks_right_in_script"]

_LACKS_RIGHT = "this user of the Redis server lacks a right ({}): grant it with ACL SETUSER"
_MOVING = "the Redis cluster is moving these keys to another node ({}): try again when CLUSTER NODES shows it done"
_DOWN = "the Redis cluster does not serve these keys ({}): start the missing node, or wait for its replica to take over"

_BY_TYPE: dict[type[Exception], str] = {
    AuthenticationError: "the Redis server refused these credentials ({}): correct user and password in the URL",
    NoPermissionError: _LACKS_RIGHT,
    ReadOnlyError: "the Redis server is a read-only replica ({}): point the URL at the primary",
    MasterDownError: "the Redis server is a replica without its primary ({}): point the URL at the primary",
    ClusterDownError: _DOWN,
    SlotNotCoveredError: _DOWN,
    TryAgainError: _MOVING,
    ClusterError: _MOVING,
    OutOfMemoryError: "the Redis server is out of memory ({}): raise maxmemory or free space; nothing was written",
}
_BY_WORDS = {
    "WRONGTYPE": "a key of another program is in the way ({}): use another prefix or database",
    "MISCONF": "the Redis server cannot save to its disk ({}): free space or repair the disk; nothing was written",
    "NOREPLICAS": "the Redis server has too few replicas to accept writes ({}): start them, or lower min-replicas-to-write",
    NOT_LOCAL: _MOVING,
    "BUSY ": "the Redis server is busy with a script ({}): wait, or end it with SCRIPT KILL",
}
"""Refusals for which the client library has no type."""
_IN_SCRIPT = ("ACL failure in script", "The user executing the script can't run")
"""A right missing inside a script, as Valkey and Redis word it."""


def advice(trouble: Exception) -> str:
    """One line on what the server refused, and what to do about it."""
    words = words_of(trouble)
    for kind, saying in _BY_TYPE.items():
        if isinstance(trouble, kind):
            return saying.format(words)
    for begin, saying in _BY_WORDS.items():
        if is_refusal(trouble, begin):
            return saying.format(words)
    if lacks_right_in_script(trouble):
        return _LACKS_RIGHT.format(words)
    if isinstance(trouble, RedisClusterException):
        return f"the Redis cluster cannot be used ({words}): correct the URL (redis:// for a single server)"
    return f"the Redis server refused the command: {words}"


def lacks_right_in_script(trouble: Exception) -> bool:
    """Whether a script was refused a command that its caller may not call."""
    return any(is_refusal(trouble, begin) for begin in _IN_SCRIPT)
