"""Reading the pages that stand next to reports, as a browser does."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

EVIL = "<script>alert(1)</script>"
VOID = {"meta", "br"}


class Page(HTMLParser):
    """A page: the tags in it, its texts, and what its dots say under the mouse."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.titles: list[str] = []
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        inside = self._open[-1:]
        if inside == ["title"] and "svg" in self._open:
            self.titles.append(data)
        elif data.strip() and inside != ["style"]:
            self.texts.append(" ".join(data.split()))

    @property
    def answer(self) -> str:
        """The sentences that the page begins with, before what to do next."""
        end = "Next:" if "Next:" in self.texts else "What to worry about"
        [_, _, *answer] = self.texts[: self.texts.index(end)]  # the window's title, and the job
        return " ".join(answer).replace("\u00a0", " ")

    @property
    def worries(self) -> str:
        """What stands below *What to worry about*, up to the first part."""
        start = self.texts.index("What to worry about")
        return " ".join(self.texts[start + 1 : start + 9])

    def assert_self_contained(self) -> None:
        """No script, nothing fetched, a policy that forbids both; links to pictures only."""
        assert not {"script", "img", "link", "iframe", "object", "image", "use"} & set(self.tags)
        names = {name for name, _ in self.attributes}
        assert not {name for name in names if name == "src" or name.startswith("on")}
        links = [value for name, value in self.attributes if name == "href"]
        assert all(re.fullmatch(r"[a-z]+\.png", link) for link in links)
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        assert ("content", policy) in self.attributes
