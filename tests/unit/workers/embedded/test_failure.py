"""Why a server did not start, from log lines as the real ones write them."""

from pathlib import Path

import pytest

from workers.embedded.failure import last_reason, start_failure
from workers.errors import ServerDataError, ServerNotStartedError

BAD_FORMAT = (
    "10124:M 30 Nov 2026 22:54:32.071 # Bad file format reading the append only file appendonly.aof.2.base.rdb: "
    "make a backup of your AOF file, then use ./redis-check-aof --fix <filename.manifest>"
)


def failure(*lines, version="Redis 7.0.15", writer="Redis 7.0.15"):
    return start_failure(lines, log=Path("/d/logs/server.log"), data=Path("/d/server"), version=version, writer_version=writer)


def test_data_of_another_server_names_both():
    error = failure(BAD_FORMAT, writer="Valkey 9.1.2")
    assert isinstance(error, ServerDataError)
    assert str(error).startswith("Redis 7.0.15 cannot read the data in /d/server, which Valkey 9.1.2 wrote: start with Valkey")


@pytest.mark.parametrize("line", [BAD_FORMAT, "1:M x # Fatal error loading the DB, check server logs. Exiting."])
def test_unreadable_data_of_the_same_server_is_damaged(line):
    error = failure(line)
    assert isinstance(error, ServerDataError)
    assert str(error).startswith("The data in /d/server is damaged (")


def test_every_other_failure_carries_the_last_word_and_the_log():
    error = failure("10124:M 30 Nov 2026 22:54:32.066 # Failed opening Unix socket: bind: Permission denied")
    assert type(error) is ServerNotStartedError
    assert str(error) == (
        "The private server (Redis 7.0.15) did not start: "
        "Failed opening Unix socket: bind: Permission denied (all of it in /d/logs/server.log)"
    )


def test_the_reason_is_the_last_warning_that_is_not_advice():
    advice = "10124:M 30 Nov 2026 22:54:32.066 # WARNING Memory overcommit must be enabled!"
    assert last_reason([BAD_FORMAT, advice, "10124:M 30 Nov 2026 22:54:33.000 * bye"]).startswith("Bad file format reading")


def test_without_a_warning_it_is_the_last_line_and_without_any_line_it_says_so():
    assert last_reason(["*** FATAL CONFIG FILE ERROR ***", "Can't chdir to '/d'"]) == "Can't chdir to '/d'"
    assert last_reason([]) == "it said nothing"
