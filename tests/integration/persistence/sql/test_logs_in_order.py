"""Readers that page on never miss an entry, however late a writer commits."""

import threading

import sqlalchemy as sa

from persistence.sql import SqlPersistence


def test_an_entry_of_a_transaction_that_commits_late_is_not_passed_over(server_store, server_url):
    engine = sa.create_engine(server_url, poolclass=sa.NullPool)
    server_store.initialize_if_absent("p", "f", b"1", append=[("log", b"first")])
    (first,) = server_store.read_log("log")
    with engine.connect() as slow:
        assert SqlPersistence(slow).initialize_if_absent("q", "f", b"1", append=[("log", b"slow")])
        write = lambda: server_store.initialize_if_absent("r", "f", b"1", append=[("log", b"quick")])  # noqa: E731
        quick = threading.Thread(target=write)
        quick.start()
        # The quick one took its position after the slow one, so that it waits, and nothing of either is seen yet.
        assert server_store.read_log("log", first.position) == []
        other = server_store.initialize_if_absent("s", "f", b"1", append=[("other log", b"not held up")])
        assert other
        assert quick.is_alive()
        slow.commit()
        quick.join()
    assert [entry.data for entry in server_store.read_log("log", first.position)] == [b"slow", b"quick"]


def test_a_log_keeps_its_newest_entries_up_to_about_its_limit(any_url):
    store = SqlPersistence(any_url, log_limit=100)
    for turn in range(10):
        append = [("log", b"%d" % (turn * 30 + place)) for place in range(30)]
        store.initialize_if_absent(f"p{turn}", "f", b"1", append=append)
        kept = [entry.data for entry in store.read_log("log", limit=1000)]
        written = (turn + 1) * 30
        assert kept == [b"%d" % place for place in range(written - len(kept), written)]
        assert min(written, 100) <= len(kept) < 150
    store.close()
