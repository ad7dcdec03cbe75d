"""The store in Redis or Valkey, and the link to the servers that the bus and the mesh reuse."""

from persistence.redis.clients import Client, ClusterAddress, connect
from persistence.redis.link import RedisLink, Script, load_script, missing_rights
from persistence.redis.rights import CLUSTER_RIGHTS, CONNECTION_RIGHTS, STORE_RIGHTS
from persistence.redis.store import RedisPersistence

__all__ = [
    "CLUSTER_RIGHTS",
    "CONNECTION_RIGHTS",
    "STORE_RIGHTS",
    "Client",
    "ClusterAddress",
    "RedisLink",
    "RedisPersistence",
    "Script",
    "connect",
    "load_script",
    "missing_rights",
]
