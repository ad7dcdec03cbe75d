"""The part of jarvis.toml that concerns operator and sources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mesh.errors import ConfigError, MeshError
from mesh.settings import MeshConfig, load_config

Load = Callable[[str], MeshConfig]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Load a jarvis.toml with this content."""

    def make(content: str) -> MeshConfig:
        path = tmp_path / "jarvis.toml"
        path.write_text(content, encoding="utf-8")
        return load_config(path)

    return make


def test_an_empty_file_is_a_calm_start(load: Load) -> None:
    assert load("") == MeshConfig()


def test_paths_are_seen_from_the_folder_of_the_file(load: Load, tmp_path: Path) -> None:
    config = load('[[feeds]]\nname = "A"\npath = "feeds/a.xml"\n[[notes]]\nname = "N"\npath = "/abs"')

    assert config.feeds[0].location == tmp_path / "feeds/a.xml"
    assert config.notes[0].path == Path("/abs")


def test_tables_of_other_rooms_are_let_through(load: Load) -> None:
    assert load("[schedule]\nhour = 7\n[watchdog]\n[alerts]\n[server]\n") == MeshConfig()


def test_an_endpoint_may_be_an_address_of_any_family(load: Load) -> None:
    config = load('[[checks]]\nname = "a"\ntcp = "[::1]:6379"\n[[checks]]\nname = "b"\ntcp = "db.example:5432"')

    assert [check.endpoint for check in config.checks] == [("::1", 6379), ("db.example", 5432)]


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "jarvis.toml"
    path.write_bytes(b"\xef\xbb\xbf[operator]\nname = 'Ada'\n")

    assert load_config(path).operator.name == "Ada"


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("[operator]\nzone = 'Mars/Olympus'", "operator.zone: there is no time zone 'Mars/Olympus'"),
        ("[operator]\nzone = '../../etc'", "operator.zone: there is no time zone"),
        ("[operator]\nzome = 'UTC'", "operator.zome: there is no such key"),
        ("[feed]\nname = 'a'", "there is no table 'feed'; known tables: alerts, briefing, calendars, checks, feeds"),
        ("[feeds]\nname = 'a'", "feeds: must be a list of tables"),
        ("[[feeds]]\nname = 'a'", "feeds[1]: give either url or path"),
        ("[[feeds]]\npath = 'a'", "feeds[1].name: is missing"),
        ("[[feeds]]\nname = ' '\npath = 'a'", "feeds[1].name: must not be empty"),
        ("[[feeds]]\nname = 'a'\nurl = 'ftp://a'", "feeds[1].url: must be a web address"),
        ("[[feeds]]\nname = 'a'\nurl = 'http://[b'", "feeds[1].url: must be a web address"),
        ("[[feeds]]\nname = 'a'\npath = 'a'\n[[feeds]]\nname = 'a'\npath = 'b'", "two sources of one kind are called 'a'"),
        ("[[checks]]\nname = 'a'\ntcp = 'db'", "checks[1].tcp: must be host:port"),
        ("[[checks]]\nname = 'a'\ntcp = 'db:99999'", "checks[1].tcp: must be host:port"),
        ("[[checks]]\nname = 'a'", "checks[1]: give either url or tcp"),
        (
            "[briefing]\nwindow_hours = 0\nitems_per_source = 0",
            "briefing.window_hours: Input should be greater than 0 (and 1 more)",
        ),
        ("= nonsense", "is not TOML"),
    ],
)
def test_a_mistake_is_one_line_with_file_key_and_remedy(load: Load, tmp_path: Path, content: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        load(content)

    assert str(raised.value).startswith(f"{tmp_path / 'jarvis.toml'}: {complaint}")
    assert "\n" not in str(raised.value)


def test_a_file_that_is_missing_or_no_text_is_said_in_a_line(tmp_path: Path) -> None:
    latin = tmp_path / "latin.toml"
    latin.write_bytes(b"[operator]\nname = '\xe9'\n")

    with pytest.raises(MeshError, match="cannot be read: No such file or directory; `jarvis init` writes a new one"):
        load_config(tmp_path / "nothing.toml")
    with pytest.raises(ConfigError, match="is not UTF-8 text"):
        load_config(latin)
