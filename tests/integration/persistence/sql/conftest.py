"""Databases of the tests' own on PostgreSQL, MariaDB and in SQLite files, and a wire that may lose a COMMIT or its reply.

The servers' URLs stand in JARVIS_TEST_POSTGRES_URL and JARVIS_TEST_MARIADB_URL, else the local servers are used. A server that
is not there fails the tests. Each process of a test run makes a database with a name of its own and drops it at the end.
"""

import os
import secrets
import select
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest
import sqlalchemy as sa
from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from persistence.sql import RecordColumns, SqlPersistence, Tables

SERVERS = {
    "postgresql": os.environ.get("JARVIS_TEST_POSTGRES_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres"),
    "mariadb": os.environ.get("JARVIS_TEST_MARIADB_URL", "mysql+pymysql://root@127.0.0.1:3306/mysql"),
}


def server_engine(kind: str) -> sa.Engine:
    """An engine on the server's own database."""
    return sa.create_engine(SERVERS[kind], isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)


@pytest.fixture(scope="session")
def database_of() -> Iterator[Callable[[str], sa.URL]]:
    """Return a function that gives the URL of this process's database on a server, made at its first use."""
    urls: dict[str, sa.URL] = {}

    def database(kind: str) -> sa.URL:
        if kind not in urls:
            name = f"jarvis_test_{secrets.token_hex(6)}"
            with server_engine(kind).connect() as connection:
                connection.exec_driver_sql(f"CREATE DATABASE {name}")
            urls[kind] = sa.make_url(SERVERS[kind]).set(database=name)
            made = SqlPersistence(urls[kind])
            made.create_schema()
            made.close()
        return urls[kind]

    yield database
    for kind, url in urls.items():
        force = " WITH (FORCE)" if kind == "postgresql" else ""
        with server_engine(kind).connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {url.database}{force}")


@pytest.fixture
def url_of(database_of, tmp_path) -> Callable[[str], sa.URL]:
    """Return a function that gives the URL of a database whose tables are there and empty."""

    def url(kind: str) -> sa.URL:
        if kind == "sqlite":
            return made_in_file(sa.make_url(f"sqlite:///{tmp_path}/store.db"))
        empty(database_of(kind))
        return database_of(kind)

    return url


def made_in_file(url: sa.URL) -> sa.URL:
    store = SqlPersistence(url)
    store.create_schema()
    store.close()
    return url


def empty(url: sa.URL) -> None:
    """Delete every row but the version."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    tables = Tables()
    with engine.begin() as connection:
        for table in (tables.store, tables.pieces, tables.index, tables.log, tables.log_head):
            connection.execute(table.delete())


@pytest.fixture(params=["postgresql", "mariadb"])
def server(request) -> str:
    """Return the kind of a server, each in turn."""
    return request.param


@pytest.fixture
def server_url(server, url_of) -> sa.URL:
    """Return the URL of an empty database on a server, each in turn."""
    return url_of(server)


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def any_url(request, url_of) -> sa.URL:
    """Return the URL of an empty database of each kind in turn."""
    return url_of(request.param)


@pytest.fixture
def opener(any_url) -> Callable[..., SqlPersistence]:
    """Return a picklable callable that opens the store at `any_url`."""
    return partial(SqlPersistence, any_url)


@pytest.fixture
def store(opener) -> Iterator[SqlPersistence]:
    """Return an empty store at `any_url`."""
    store = opener()
    yield store
    store.close()


@pytest.fixture
def server_store(server_url) -> Iterator[SqlPersistence]:
    """Return an empty store on a server."""
    store = SqlPersistence(server_url)
    yield store
    store.close()


@pytest.fixture
def mapped_model() -> type:
    """Return a mapped class as a project may own it: a primary key of its own, a further column."""

    class Base(DeclarativeBase):
        pass

    class Record(RecordColumns, Base):
        __tablename__ = "project_records"
        __table_args__ = (UniqueConstraint("partition", "key"), {"mysql_engine": "InnoDB"})
        id: Mapped[int] = mapped_column(primary_key=True)
        writes: Mapped[int] = mapped_column(default=0)

    return Record


@pytest.fixture
def project_engine(any_url, mapped_model) -> Iterator[sa.Engine]:
    """Return a project's engine on a database of each kind in turn, with the table of its class, which is empty."""
    engine = sa.create_engine(any_url)
    mapped_model.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.delete(mapped_model.__table__))
    yield engine
    engine.dispose()


class Wire:
    """A port in front of a database server that can lose the reply to a COMMIT, or the COMMIT itself.

    Statements and replies of these tests are small enough to pass in one piece.
    """

    def __init__(self, server: sa.URL) -> None:
        self.lost_replies = 0
        """Replies to a COMMIT still to be lost: it took effect, and the connection breaks in place of the reply."""
        self.lost_requests = 0
        """COMMITs still to be lost: the connection breaks before the server sees them."""
        self._server = (server.host or "127.0.0.1", server.port or (5432 if server.drivername.startswith("postgres") else 3306))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = server.set(host="127.0.0.1", port=self._listener.getsockname()[1])
        if server.drivername.startswith("postgres"):
            # Else the driver asks for encryption first.
            self.url = self.url.update_query_dict({"sslmode": "disable", "gssencmode": "disable"})
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, suppress(OSError), socket.create_connection(self._server) as far:
            committing = False
            while True:
                for end in select.select([near, far], [], [])[0]:
                    data = end.recv(2**20)
                    if not data:
                        return
                    if end is near:
                        committing = b"COMMIT" in data and b"COMMITTED" not in data
                        if committing and self.lost_requests:
                            self.lost_requests -= 1
                            return
                        far.sendall(data)
                    elif committing and self.lost_replies:
                        self.lost_replies -= 1
                        return
                    else:
                        near.sendall(data)


@pytest.fixture
def wire(server_url) -> Iterator[Wire]:
    """Return a wire to the server of `server_url`."""
    wire = Wire(server_url)
    yield wire
    wire.close()
