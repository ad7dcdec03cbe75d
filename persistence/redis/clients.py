"""Our own client for whatever was handed in: a server, the primary that Sentinels name, or a cluster.

It has the same addresses, credentials and TLS, speaks bytes, and repeats nothing by itself: the library would send a command
again without knowing whether the first one took effect. What it may still do in a cluster is to follow a redirection, which
says that the first node did nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import redis
from redis.backoff import NoBackoff
from redis.client import Pipeline
from redis.cluster import ClusterNode, ClusterPipeline
from redis.connection import parse_url  # pyright: ignore[reportUnknownVariableType]
from redis.exceptions import RedisError
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from persistence.redis.address import Address, read_address

__all__ = ["CONNECT_TIMEOUT", "REPLY_TIMEOUT", "Client", "ClusterAddress", "Servers", "connect", "own_servers"]

CONNECT_TIMEOUT = 3.0
"""Seconds to wait for a connection."""
REPLY_TIMEOUT = 5.0
"""Seconds to wait for a reply; a blocking read must ask for less."""

_WIRE_OPTIONS: dict[str, Any] = {
    "decode_responses": False,
    "encoding": "utf-8",
    "encoding_errors": "strict",
    "protocol": 2,
    "legacy_responses": True,
}
_PATIENCE: dict[str, Any] = {"socket_timeout": REPLY_TIMEOUT, "socket_connect_timeout": CONNECT_TIMEOUT}
_OPTIONS: dict[str, Any] = {**_WIRE_OPTIONS, **_PATIENCE, "health_check_interval": 30}
_FOREIGN_OPTIONS = {
    *_WIRE_OPTIONS,
    *("retry", "retry_on_error", "retry_on_timeout"),
    *("maint_notifications_config", "maint_notifications_pool_handler", "event_dispatcher", "himport_registry"),
    *("connection_pool", "redis_connect_func"),
}
"""Options of a client handed in that ours replace, or that belong to its pool and its protocol alone."""


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """A cluster by some of its nodes, not connected: the library's own client of a cluster connects when it is made."""

    nodes: tuple[tuple[str, int], ...]
    options: Mapping[str, Any] = field(repr=False)  # may hold a password

    def close(self) -> None:
        """Nothing: there are no connections."""


Client = redis.Redis | redis.RedisCluster | ClusterAddress
"""What can be handed in."""


def connect(url: str, **options: Any) -> redis.Redis | ClusterAddress:
    """A client for a URL (`persistence.redis.address`) with our options; connects at the first command.

    Raises ValueError that names the part of the URL that is wrong.
    """
    address = read_address(url)
    given = {**_OPTIONS, **options}
    client = redis.Redis.from_url(address.plain, **{**given, "retry": _no_retry()})
    try:
        client.connection_pool.make_connection()  # reads the options, and does not connect yet
    except (TypeError, RedisError) as trouble:
        raise ValueError(f"cannot use this Redis URL: an option in its query is wrong ({trouble})") from None
    if not address.hosts:
        return client
    named = {**given, **_named_options(address)}
    if not address.is_cluster:
        return _primary_of(address, named)
    return ClusterAddress(address.hosts, {name: value for name, value in named.items() if name != "db"})


def _named_options(address: Address) -> dict[str, Any]:
    options = cast(dict[str, Any], parse_url(address.plain))
    tls = {"ssl": True} if options.pop("connection_class", None) else {}
    return {**{name: value for name, value in options.items() if name not in ("host", "port")}, **tls}


def _primary_of(address: Address, options: dict[str, Any]) -> redis.Redis:
    tls = {name: value for name, value in options.items() if name.startswith("ssl")}
    sentinels = Sentinel(address.hosts, sentinel_kwargs={**_PATIENCE, **tls, **address.sentinel_options})
    return sentinels.master_for(cast(str, address.service), **options)


def _no_retry() -> Retry:
    return Retry(NoBackoff(), 0)


class Servers:
    """The client that a link speaks through, made at the first command, and what can be said of it before."""

    def __init__(self, make: Callable[[], redis.Redis], name: str, timeout: float | None, let_go: Callable[[], None]) -> None:
        self._make = make
        self._made: redis.Redis | None = None
        self._let_go = let_go
        self.name = name
        """Where it is, without credentials, as people say it: "server at host:6379"."""
        self.timeout = timeout
        """Seconds that a reply may take; None for any time."""

    @property
    def client(self) -> redis.Redis:
        """The client. Two threads may each make one at first, and the one that is forgotten closes itself."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def each(self) -> dict[str, redis.Redis]:
        """A client for each server that takes writes, by its address: one, or every primary of a cluster."""
        client: object = self.client
        if isinstance(client, redis.RedisCluster):
            return {node.name: client.get_redis_connection(node) for node in client.get_primaries()}
        return {self.name.rpartition(" ")[2]: self.client}

    def reconnect(self) -> None:
        """Drop connections that are not in use, so that the next command asks anew who is the primary.

        A name may lead elsewhere since; a connection that was kept would stay with the old server for ever.
        """
        client: object = self._made
        if isinstance(client, redis.Redis):
            client.connection_pool.disconnect(inuse_connections=False)

    def close(self) -> None:
        """Close connections that nobody else can close."""
        if isinstance(cast(object, self._made), redis.RedisCluster):
            cast(Any, self._made).disconnect_connection_pools()
        self._let_go()


def own_servers(client: object, error: type[Exception]) -> Servers:
    """What speaks to the same servers with our options. Raises ``error`` for what is no client: a queue, a coroutine client."""
    if isinstance(client, ClusterAddress):
        return _own_cluster(client.nodes, client.options)
    if isinstance(client, redis.RedisCluster) and not isinstance(client, ClusterPipeline):
        return _own_cluster(*_address_of(client))
    if isinstance(client, Pipeline) or not isinstance(client, redis.Redis):
        raise error(f"a {type(client).__name__} cannot serve as the connection: hand in a redis.Redis client")
    pool = client.connection_pool
    if isinstance(pool, SentinelConnectionPool):
        if not pool.is_master:
            raise error("a client of a Sentinel's replicas cannot write: hand in Sentinel.master_for(…)")
        return _own_primary(pool)
    if type(pool) in (redis.ConnectionPool, redis.BlockingConnectionPool):
        return _own_server(pool)
    return Servers(lambda: client, _server_name(pool), _timeout(pool.connection_kwargs), lambda: None)


def _own_server(pool: redis.ConnectionPool) -> Servers:
    options = _ours(pool.connection_kwargs)
    ours = redis.ConnectionPool(connection_class=pool.connection_class, **options, retry=_no_retry())
    return Servers(lambda: redis.Redis(connection_pool=ours), _server_name(pool), _timeout(options), ours.disconnect)


def _own_primary(pool: SentinelConnectionPool) -> Servers:
    """The primary that the same Sentinels name, asked by connections of our own."""
    hosts, theirs = _addresses_of(pool.sentinel_manager)
    sentinels = Sentinel(hosts, sentinel_kwargs={**_PATIENCE, **theirs, "retry": _no_retry()})
    options = _ours(pool.connection_kwargs)
    service = cast(str, pool.service_name)
    ours = SentinelConnectionPool(service, sentinels, connection_class=pool.connection_class, **options, retry=_no_retry())

    def let_go() -> None:
        ours.disconnect()
        sentinels.close()

    name = f"primary {service!r} by the Sentinels at {_joined(hosts)}"
    return Servers(lambda: redis.Redis(connection_pool=ours), name, _timeout(options), let_go)


def _own_cluster(nodes: tuple[tuple[str, int], ...], options: Mapping[str, Any]) -> Servers:
    def make() -> redis.Redis:
        start = [ClusterNode(host, port) for host, port in nodes]
        # Slots that nobody serves are no reason to refuse the others.
        return cast(
            redis.Redis, _Cluster(startup_nodes=start, require_full_coverage=False, retry=_no_retry(), **_ours(options))
        )

    return Servers(make, f"cluster at {_joined(nodes)}", _timeout(options), lambda: None)


class _Cluster(redis.RedisCluster):
    """Follows a redirection also to a node that serves no slot yet, which the library knows nothing of."""

    def get_node(self, host: Any = None, port: Any = None, node_name: Any = None) -> Any:
        """The node of that name, made known where it is not."""
        found = super().get_node(host, port, node_name)
        if found is None and node_name:
            host, _, port = str(node_name).rpartition(":")
            found = self.nodes_manager.nodes_cache.setdefault(node_name, ClusterNode(host, int(port), "primary"))
        return found

    def pipeline(self, transaction: Any = None, shard_hint: Any = None) -> ClusterPipeline:
        """A pipeline that knows the same nodes."""
        pipe = super().pipeline(transaction, shard_hint)
        pipe.get_node = self.get_node
        return pipe


def _address_of(cluster: redis.RedisCluster) -> tuple[tuple[tuple[str, int], ...], dict[str, Any]]:
    manager = cluster.nodes_manager
    nodes = tuple((str(node.host), int(node.port)) for node in cast(list[Any], [*manager.startup_nodes.values()]))
    return nodes, {**manager.connection_kwargs, "address_remap": manager.address_remap}


def _addresses_of(manager: Any) -> tuple[tuple[tuple[str, int], ...], dict[str, Any]]:
    """The Sentinels that a manager asks, and how."""
    asked = [cast(dict[str, Any], sentinel.connection_pool.connection_kwargs) for sentinel in manager.sentinels]
    options = {name: value for name, value in manager.sentinel_kwargs.items() if name not in _FOREIGN_OPTIONS}
    return tuple((str(one["host"]), int(one["port"])) for one in asked), options


def _ours(options: Mapping[str, Any]) -> dict[str, Any]:
    return {**{name: value for name, value in options.items() if name not in _FOREIGN_OPTIONS}, **_WIRE_OPTIONS}


def _timeout(options: Mapping[str, Any]) -> float | None:
    return cast(float | None, options.get("socket_timeout"))


def _server_name(pool: redis.ConnectionPool) -> str:
    options = pool.connection_kwargs
    place = options.get("path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}"
    return f"server at {place}"


def _joined(hosts: tuple[tuple[str, int], ...]) -> str:
    return ",".join(f"{host}:{port}" for host, port in hosts)
