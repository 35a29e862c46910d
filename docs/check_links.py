"""Check the links of a built site: pages, files and anchors inside it must exist.

    python docs/check_links.py docs/_build/html

Other hosts are counted but not asked, so that the check needs no network.  What a page loads (scripts,
styles, fonts, pictures) must be part of the site.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes that make a browser load something.
LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("source", "src"), ("iframe", "src")}


class Page(HTMLParser):
    """The anchors and the links of one page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[str, bool]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the names and addresses of an element."""
        for name, value in attrs:
            if name == "id" or (tag, name) == ("a", "name"):
                self.anchors.add(value or "")
            elif name in ("href", "src") and value:
                self.links.append((value, (tag, name) in LOADED))


def problems(site: Path) -> tuple[list[str], set[str]]:
    """Return what is wrong, and the other hosts that pages lead to."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    pages = {path: page for path, page in pages.items() if "_static" not in path.parts}
    found, hosts = [], set()
    for path, page in pages.items():
        where = path.relative_to(site.resolve())
        for link, loaded in page.links:
            parts = urlsplit(link)
            if parts.scheme == "data" or parts.scheme == "mailto":
                continue
            if parts.scheme or parts.netloc:
                hosts.add(parts.netloc)
                if loaded:
                    found.append(f"{where}: loads {link} from another host")
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                found.append(f"{where}: there is no {link}")
            elif target in pages and parts.fragment and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{where}: there is no anchor {link}")
    for style in site.rglob("*.css"):
        for address in re.findall(r"url\(['\"]?(https?:[^)'\"]+)", style.read_text(encoding="utf-8")):
            found.append(f"{style.relative_to(site)}: loads {address} from another host")
    return found, hosts


if __name__ == "__main__":
    found, hosts = problems(Path(sys.argv[1]))
    print(*found, sep="\n")
    print(f"{len(found)} bad links; hosts that were not asked: {', '.join(sorted(hosts))}")
    sys.exit(bool(found))
