"""What the refusal of a Redis or Valkey server means, in words that say what to do."""

from redis.exceptions import (
    AuthenticationError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
)

__all__ = ["advice"]

_BY_TYPE: dict[type[Exception], str] = {
    AuthenticationError: "the Redis server refused these credentials ({}): correct user and password in the URL",
    NoPermissionError: "this user of the Redis server lacks a right ({}): grant it with ACL SETUSER",
    ReadOnlyError: "the Redis server is a read-only replica ({}): point the URL at the primary",
    MasterDownError: "the Redis server is a replica without its primary ({}): point the URL at the primary",
    OutOfMemoryError: "the Redis server is out of memory ({}): raise maxmemory or free space; nothing was written",
}
_BY_WORDS = {
    "WRONGTYPE": "a key of another program is in the way ({}): use another prefix or database",
    "MISCONF": "the Redis server cannot save to its disk ({}): free space or repair the disk; nothing was written",
    "NOREPLICAS": "the Redis server has too few replicas to accept writes ({}): start them, or lower min-replicas-to-write",
    "ACL failure in script": "this user of the Redis server lacks a right ({}): grant it with ACL SETUSER",
    "The user executing the script can't run": "this user of the Redis server lacks a right ({}): grant it with ACL SETUSER",
}
"""Refusals for which the client library has no type; rights missing inside a script are worded so by Valkey and by Redis."""


def advice(trouble: Exception) -> str:
    """One line on what the server refused, and what to do about it."""
    for kind, words in _BY_TYPE.items():
        if isinstance(trouble, kind):
            return words.format(trouble)
    for begin, words in _BY_WORDS.items():
        if isinstance(trouble, ResponseError) and str(trouble).removeprefix("ERR ").startswith(begin):
            return words.format(trouble)
    return f"the Redis server refused the command: {trouble}"
