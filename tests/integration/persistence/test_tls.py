"""TLS: a server is trusted by the authority named in the URL, and by nothing else."""

import pytest

from persistence import RedisPersistence, UnreachableError
from persistence.redis import connect

AT_ONCE = ()


def test_a_server_of_another_authority_is_not_spoken_to(tls_server):
    wrong = tls_server.url.replace(str(tls_server.authority), str(tls_server.other_authority))
    with pytest.raises(UnreachableError, match=r"no answer from the Redis server at localhost:\d+: .*(?i:certificate)"):
        RedisPersistence(connect(wrong), retry_delays=AT_ONCE).load("p")


def test_a_server_that_is_not_trusted_by_the_machine_is_not_spoken_to(tls_server):
    with pytest.raises(UnreachableError, match=r"(?i)certificate"):
        RedisPersistence(connect(tls_server.url.partition("?")[0]), retry_delays=AT_ONCE).load("p")


def test_a_server_that_speaks_tls_only_does_not_answer_in_the_clear(tls_server):
    plain = tls_server.url.replace("rediss", "redis").partition("?")[0]
    with pytest.raises(UnreachableError, match="no answer"):
        RedisPersistence(connect(plain), retry_delays=AT_ONCE).load("p")
