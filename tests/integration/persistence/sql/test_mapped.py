"""Records in a class that a project owns: its events fire inside the transaction, and can undo it."""

import pytest
import sqlalchemy as sa
from sqlalchemy.orm import Session, sessionmaker

from persistence import PersistenceError
from persistence.sql import MappedRecords, RecordColumns, SqlPersistence


@pytest.fixture
def sessions() -> sessionmaker:
    """Return a project's own makers of sessions."""

    class ProjectSession(Session):
        pass

    return sessionmaker(class_=ProjectSession)


def test_events_fire_inside_the_transaction_and_one_that_raises_undoes_it(project_engine, mapped_model, sessions):
    store = SqlPersistence(project_engine, records=MappedRecords(mapped_model, sessions))

    class VetoError(Exception):
        pass

    @sa.event.listens_for(sessions.class_, "before_flush")
    def count(session, *rest):
        for row in [*session.new, *session.dirty]:
            row.writes = (row.writes or 0) + 1
            if row.value == b"forbidden":
                raise VetoError

    assert store.initialize_if_absent("p", "f", b"1", {"a": b"1"})
    assert store.write_if_unchanged("p", "f", b"1", {"f": b"2", "a": b"2"})
    with pytest.raises(VetoError):
        store.write_if_unchanged("p", "f", b"2", {"f": b"3", "a": b"forbidden"}, append=[("log", b"told")])
    assert store.load("p") == {"f": b"2", "a": b"2"}
    assert store.read_log("log") == []
    with Session(project_engine) as session:
        rows = session.scalars(sa.select(mapped_model)).all()
        assert sorted((row.key, row.writes) for row in rows) == [(b"a", 2), (b"f", 2)]


def test_a_deletion_is_an_event_of_each_record(project_engine, mapped_model, sessions):
    store = SqlPersistence(project_engine, records=MappedRecords(mapped_model, sessions))
    gone: list[bytes] = []
    sa.event.listen(mapped_model, "after_delete", lambda mapper, connection, row: gone.append(row.key))
    store.initialize_if_absent("p", "f", b"1", {"a": b"1", "b": b"1"})
    store.write_if_unchanged("p", "f", b"1", {}, ["a"])
    store.delete_if_unchanged("p", "f", b"1")
    assert gone[0] == b"a"
    assert sorted(gone[1:]) == [b"b", b"f"]


def test_a_class_that_does_not_keep_records_apart_is_refused(mapped_model):
    base = mapped_model.__mro__[2]

    class NotApart(RecordColumns, base):
        __tablename__ = "not_apart"
        id = sa.Column(sa.Integer, primary_key=True)

    with pytest.raises(PersistenceError, match="add UniqueConstraint"):
        MappedRecords(NotApart)
