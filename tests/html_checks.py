"""What a page may hold: nothing that asks for something, and what it embeds."""

import csv
import io
import json
import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote


class Checked(HTMLParser):
    """Collects tags, what could ask for something, cells, and the embedded data."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.asks, self.cells, self._data, self.words = [], [], [], None, []
        self._last = None
        self.feed(html)

    @property
    def data(self):
        return json.loads("".join(self._data))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._last = dict(attrs)
        if tag in {"section", "details"}:
            self.cells.append("")
        self.asks += [(k, v) for k, v in attrs if k in {"src", "srcset", "action", "data"}]
        self.asks += [(k, v) for k, v in attrs if k == "href" and not _is_embedded(v, attrs)]
        self.asks += [(k, v) for k, v in attrs if k.startswith("on") or k == "style"]
        if tag in {"td", "th"}:
            self.cells.append("")
        if tag == "script" and self._last.get("id") == "data":
            self._data = []

    def handle_data(self, data):
        if self._data is not None and self._last.get("id") == "data":
            self._data.append(data)
        elif self.cells:
            self.cells[-1] += data
        self.words.append(data)


def _is_embedded(address, attributes):
    """Whether an address is the empty icon, or a table that a link saves."""
    names = dict(attributes)
    return address == "data:," or ("download" in names and address.startswith("data:text/csv;"))


def saved_tables(html):
    """The tables that a page offers as CSV: rows of texts, by the name of the file."""
    links = re.findall(r'<a href="data:text/csv;charset=utf-8,([^"]*)" download="([^"]*)"', html)
    return {unescape(name): list(csv.reader(io.StringIO(unquote(text)))) for text, name in links}


def harmless(html, scripts):
    page = Checked(html)
    assert not page.asks
    assert page.tags.count("script") == scripts.get("script", 0)
    assert not {"img", "iframe", "object", "embed", "form"} & set(page.tags)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e\u2028\ud800]", html)
    for forbidden in ("http:", "https:", "url(", "@import", "javascript:", "fetch(", "XMLHttp"):
        # the name of SVG is an address that is never asked, and url(#...) is on the page
        assert forbidden not in html.replace("http://www.w3.org/2000/svg", "").replace("url(#", "")
    assert "default-src 'none'" in html
