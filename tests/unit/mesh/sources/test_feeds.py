"""Feeds as publishers really write them (A1, A2, A4, A5, G6)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from zoneinfo import ZoneInfo

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh.sources.feeds import FeedSource, mend_references, read_feed
from mesh.sources.fetch import Document, Fetcher
from mesh.sources.window import Window

Windows = Callable[..., Window]
Feeds = Callable[..., Document]


def titles(document: Document, window: Window) -> list[str]:
    return [item.text for item in read_feed("feed", document, window).items]


def test_html_entities_and_an_open_cdata_cost_no_readable_entry(window: Windows, rss: Feeds) -> None:
    document = rss(
        "<title>A&rsquo;s news &nbsp; today</title>", "<title>Good</title>", "<title>Last</title><description><![CDATA[open"
    )
    reading = read_feed("feed", document, window())

    assert [item.text for item in reading.items] == ["A\u2019s news today", "Good", "Last"]
    assert not reading.gaps
    assert "not well-formed XML, line 1" in reading.remarks[0].text


@pytest.mark.parametrize(
    ("prolog", "charset", "title"),
    [
        ("<?xml version='1.0' encoding='us-ascii'?>", "utf-8", "Grüße"),
        ("<?xml version='1.0' encoding='windows-1251'?>", "windows-1251", "Новости дня"),
        ("<?xml version='1.0' encoding='gb2312'?>", "gb18030", "新闻喆"),
    ],
)
def test_a_wrong_charset_is_overridden_and_remarked(window: Windows, rss: Feeds, prolog: str, charset: str, title: str) -> None:
    document = rss(f"<title>{title}</title>", prolog=prolog, charset=charset, media="text/xml")
    reading = read_feed("feed", document, window())

    assert [item.text for item in reading.items] == [title]
    assert "letters may be wrong" in reading.remarks[0].text


def test_letters_that_nobody_can_know_are_marked(window: Windows, rss: Feeds) -> None:
    document = rss("<title>Новости</title>", charset="windows-1251", media="text/xml")
    reading = read_feed("feed", document, window())

    assert len(reading.items) == 1
    assert "letters may be wrong" in reading.remarks[0].text


def test_five_titles_under_one_id_stay_five_items(window: Windows, rss: Feeds) -> None:
    document = rss(*(f"<title>Title {number}</title><guid>same</guid>" for number in range(5)))

    assert len(titles(document, window())) == 5


def test_an_exact_repeat_is_shown_once(window: Windows, rss: Feeds) -> None:
    assert titles(rss("<title>Once</title>", "<title>Once</title>"), window()) == ["Once"]


def test_old_entries_are_dropped_and_undated_ones_kept_without_a_date(window: Windows, rss: Feeds) -> None:
    document = rss(
        "<title>Old</title><pubDate>Mon, 09 Nov 2026 08:00:00 GMT</pubDate>",
        "<title>New</title><pubDate>Mon, 30 Nov 2026 04:00:00 GMT</pubDate>",
        "<title>Whenever</title>",
        "<title>Never</title><pubDate>the 31st of Nonsense</pubDate>",
    )
    items = read_feed("feed", document, window()).items

    assert [(item.text, item.at) for item in items] == [
        ("New", dt.datetime(2026, 11, 30, 4, tzinfo=dt.UTC)),
        ("Whenever", None),
        ("Never", None),
    ]


def test_an_old_entry_that_changed_says_so(window: Windows) -> None:
    entry = (
        "<entry><title>Strike</title><published>2026-11-02T08:00:00Z</published><updated>2026-11-30T05:00:00Z</updated></entry>"
    )
    document = Document(f"<feed xmlns='http://www.w3.org/2005/Atom'><title>t</title>{entry}</feed>".encode())

    assert titles(document, window()) == ["Update: Strike"]


def test_entries_from_the_future_are_left_out_and_counted(window: Windows, rss: Feeds) -> None:
    reading = read_feed("feed", rss("<title>A</title><pubDate>Mon, 07 Dec 2026 08:00:00 GMT</pubDate>"), window())

    assert not reading.items
    assert [remark.text for remark in reading.remarks] == ["entries dated after this briefing, left out: 1"]


def test_an_entry_without_a_title_shows_its_text_and_one_without_either_is_counted(window: Windows, rss: Feeds) -> None:
    reading = read_feed("feed", rss("<description>Only &lt;b&gt;text&lt;/b&gt;</description>", "<guid>1</guid>"), window())

    assert [item.text for item in reading.items] == ["Only text"]
    assert [remark.text for remark in reading.remarks] == ["entries without a title or a text, left out: 1"]


def test_half_a_character_costs_no_entry(window: Windows, rss: Feeds) -> None:
    assert titles(rss("<title>a &#xD83D; b</title>", "<title>&#xD83D;&#xDE00;</title>"), window()) == ["a \ufffd b", "😀"]


@pytest.mark.parametrize(
    ("references", "mended"),
    [
        (b"&#55357;&#56832;", "&#128512;"),
        (b"&#65;&#xD83D;&#xDE00;&#66;", "&#65;&#128512;&#66;"),
        (b"&#xDE00;&#xD83D;", "&#65533;&#65533;"),
        (b"&#x110000; &#99999999999999999999;", "&#65533; &#65533;"),
        (b"&amp;#65 &#; &#x;", "&amp;#65 &#; &#x;"),
    ],
)
def test_references_are_mended(references: bytes, mended: str) -> None:
    assert mend_references(references).decode() == mended


@pytest.mark.parametrize(
    "content", [b"", b"   ", b"<html><body>Not found</body></html>", b"{}", b"\x00\xff\xfe", b"<rss version='2.0'></rss>"]
)
def test_what_is_no_feed_is_a_gap_with_a_reason(window: Windows, content: bytes) -> None:
    reading = read_feed("feed", Document(content, {"content-type": "text/html"}), window())

    assert not reading.items
    assert len(reading.gaps) == 1
    assert reading.gaps[0].reason.startswith("no entries in it (")


@given(
    st.lists(
        st.sampled_from(["<", ">", "rss", "item", "title", "/", "&#xD83D;", "]]>", "<![CDATA[", "<!--", "a", "\xff", '"']),
        max_size=30,
    )
)
def test_no_content_raises(parts: list[str]) -> None:
    now = dt.datetime(2026, 11, 30, tzinfo=dt.UTC)
    window = Window(now.date(), now, now, ZoneInfo("UTC"))
    reading = read_feed("feed", Document("".join(["<rss><channel>", *parts]).encode("latin-1")), window)

    assert reading.items or reading.gaps or reading.remarks


def test_links_that_are_no_web_addresses_are_left_out(window: Windows, rss: Feeds) -> None:
    document = rss("<title>a</title><link>javascript:alert(1)</link>", "<title>b</title><link>https://b.example/</link>")

    assert [item.link for item in read_feed("feed", document, window()).items] == [None, "https://b.example/"]


def test_a_server_that_refuses_is_a_gap(window: Windows) -> None:
    fetcher = Fetcher(transport=httpx2.MockTransport(lambda request: httpx2.Response(503)))
    with fetcher:
        reading = FeedSource("Paper", "https://paper.example/feed", fetcher).read(window())

    assert [(gap.source, gap.reason) for gap in reading.gaps] == [("Paper", "the server answered 503 Service Unavailable")]
