"""What a user of the server must be allowed, no more: the rights of a store, as ACL SETUSER takes them."""

__all__ = ["CLUSTER_RIGHTS", "CONNECTION_RIGHTS", "STORE_RIGHTS"]

STORE_RIGHTS = (
    *("hget", "hgetall", "zrange", "xrange"),
    *("eval", "evalsha"),
    *("persist", "hset", "hdel", "hlen", "del", "zadd", "zrem", "zcard", "xadd", "xlen"),
)
"""Commands on the keys ``<prefix>*``: reads, scripts, and what the scripts call."""

CONNECTION_RIGHTS = ("ping", "select")
"""Commands by which a connection is kept and a database chosen."""

CLUSTER_RIGHTS = ("cluster|slots", "command")
"""Commands by which a client of a cluster learns where the keys are."""
