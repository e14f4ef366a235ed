"""Reading the pages that stand beside reports, as a browser does."""

from __future__ import annotations

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
    def worries(self) -> str:
        """What stands below *What to worry about*, up to the first part."""
        start = self.texts.index("What to worry about")
        return " ".join(self.texts[start + 1 : start + 9])

    def assert_self_contained(self) -> None:
        """No script, nothing that is fetched, and a policy that forbids both."""
        assert not {"script", "img", "link", "iframe", "object", "image", "use"} & set(self.tags)
        names = {name for name, _ in self.attributes}
        assert not {name for name in names if name in ("src", "href") or name.startswith("on")}
        policy = "default-src 'none'; style-src 'unsafe-inline'"
        assert ("content", policy) in self.attributes
