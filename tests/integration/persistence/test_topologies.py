"""The contract on every arrangement of servers: a cluster, a primary behind Sentinels, TLS."""

from collections.abc import Callable
from functools import partial

import pytest

from persistence import Persistence, open_persistence
from persistence.testing import SharedPersistenceContract


class OnServers(SharedPersistenceContract):
    @pytest.fixture
    def store(self, opener: Callable[[], Persistence]) -> Persistence:
        return opener()


class TestCluster(OnServers):
    @pytest.fixture
    def opener(self, cluster) -> Callable[[], Persistence]:
        return partial(open_persistence, cluster.url)


class TestSentinels(OnServers):
    @pytest.fixture
    def opener(self, sentinels) -> Callable[[], Persistence]:
        return partial(open_persistence, sentinels.url)


class TestTls(OnServers):
    @pytest.fixture
    def opener(self, tls_server) -> Callable[[], Persistence]:
        return partial(open_persistence, tls_server.url)
