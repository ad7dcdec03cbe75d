"""The contract on every database (C231 to C240): the same suite as for every other store, real processes included."""

from collections.abc import Callable, Iterator
from functools import partial

import pytest
import sqlalchemy as sa

from persistence import Persistence
from persistence.sql import MappedRecords, SqlPersistence
from persistence.testing import SharedPersistenceContract
from persistence.testing.exactness import ExactnessCases
from persistence.testing.index import IndexCases
from persistence.testing.logs import LogCases
from persistence.testing.model import ModelCases
from persistence.testing.races import ThreadRaceCases
from persistence.testing.records import RecordCases


class TestSqlPersistenceOnServers(SharedPersistenceContract):
    @pytest.fixture
    def opener(self, server_url: sa.URL) -> Callable[[], Persistence]:
        return partial(SqlPersistence, server_url)

    @pytest.fixture
    def store(self, server_store: SqlPersistence) -> Persistence:
        return server_store


class TestJoinedConnection(RecordCases, ExactnessCases, LogCases, ModelCases):
    """Everything in one transaction of the caller, which is one thread's: what a savepoint could change."""

    @pytest.fixture
    def store(self, any_url: sa.URL) -> Iterator[Persistence]:
        engine = sa.create_engine(any_url, poolclass=sa.NullPool)
        with engine.connect() as connection:
            yield SqlPersistence(connection)


class TestHandedInEngine(RecordCases, IndexCases, ThreadRaceCases):
    """An engine with the options of somebody's program, at the isolation level that differs most from ours."""

    @pytest.fixture
    def store(self, server_url: sa.URL) -> Iterator[Persistence]:
        engine = sa.create_engine(server_url, isolation_level="SERIALIZABLE")
        yield SqlPersistence(engine)
        engine.dispose()


class TestMappedRecords(RecordCases, ExactnessCases, ThreadRaceCases, ModelCases):
    """All that depends on where records are. Large values stand in one row here, as large as the server's packets allow."""

    @pytest.fixture
    def store(self, project_engine: sa.Engine, mapped_model: type) -> Persistence:
        return SqlPersistence(project_engine, records=MappedRecords(mapped_model))
