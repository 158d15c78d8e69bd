"""The documentation's site: built from the pages as they stand, whole without a network."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from browser import Browser
from case_samples import Some

from pellucid.lessons.walks.walk import load_walk

ROOT = Path(__file__).parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
LIVE = "live.html"
"""The page of a model, which other tests look at."""

MOST_BYTES, MOST_IN_INDEX = 14_600_000, 300_000
PAGES = ("index", "start", "guides/measures", "lessons/slides", "course", "reference/python")
SAMPLE = (
    *("docs/README.md", "docs/start.md", "docs/guides/measures.md", "docs/lessons/README.md"),
    *("docs/lessons/slides.md", "docs/course.ipynb", "docs/reference/*.md"),
)
"""The sources that are built without `--full`: those that the tests open."""

pytestmark = pytest.mark.timeout(400)  # building takes half a minute, and several on a busy machine


class Page(HTMLParser):
    """The links of a page, what it loads, and the places that a link can lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.places.add(values.get("id", ""))
        if tag == "a":
            self.links.append(values.get("href", ""))
        self.loads += [values[name] for name in ("src", "srcset", "data") if name in values]
        if tag == "link":
            self.loads.append(values.get("href", ""))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The site, or a few of its pages without `--full`, built once for all processes."""
    if importlib.util.find_spec("sphinx") is None:
        assert not os.environ.get("CI"), "with CI=1 there must be Sphinx: make setup"
        pytest.skip("Sphinx is missing; install the extra `site`")
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / "site"
    with (base / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            sources = () if request.config.getoption("full") else SAMPLE
            build_site(base / "site-cache", base / "site-new", sources)
            (base / "site-new").rename(folder)
    return folder


def build_site(cache: Path, folder: Path, sources: Sequence[str] = ()) -> None:
    """Build the site, or some sources of it, as `make site` does: a warning is a failure."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs/site"]
    if sources:  # Their links to the other pages lead nowhere.
        command += ["-D", f"include_patterns={','.join(sources)}"]
        command += ["-D", "suppress_warnings=toc,myst.xref_missing"]
    done = subprocess.run(
        [*command, "-d", str(cache), ".", str(folder)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def find_dead(pages: dict[Path, Page]) -> list[str]:
    """List the links that lead to no file, or to no place in a page."""
    dead = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, place = unquote(link).partition("#")
            target = (path.parent / name).resolve() if name else path
            found = pages.get(target)
            if not target.exists() or (found is not None and place not in found.places):
                dead.append(f"{path.name}: {link}")
    return dead


def find_remote(pages: dict[Path, Page], styles: list[str]) -> list[str]:
    """List the remote addresses that a page or a style sheet would load."""
    loads = [load for page in pages.values() for load in page.loads]
    loads += [url for style in styles for url in re.findall(r"url\(['\"]?([^'\")]+)", style)]
    return [load for load in loads if re.match(r"(?:https?:)?//", load)]


@pytest.mark.sample(0)
def test_site_is_whole_and_small(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    assert (site / "searchindex.js").stat().st_size < MOST_IN_INDEX
    pages = {path: Page(path) for path in files if path.suffix == ".html" and path.name != LIVE}
    assert len(pages) > 60
    assert not find_dead(pages)


def test_site_has_lessons_formulas_and_commands_and_no_remote_addresses(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html") if path.name != LIVE}
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert len(pages) >= len(PAGES)
    assert not find_remote(pages, styles)
    assert (site / LIVE).exists()
    slides = (site / "lessons" / "slides.html").read_text(encoding="utf-8")
    screens = re.findall(r'<iframe src="\.\./live\.html#view=learn&amp;lesson=slides', slides)
    assert len(screens) == len(load_walk("slides").statements)
    text = (site / "guides" / "measures.html").read_text(encoding="utf-8")
    assert text.count("<math ") > 10
    assert "\\sum" not in re.sub(r"<code.*?</code>", "", text)
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    assert "--sample" in commands
    assert "pellucid.Translator.translate" in (site / "reference" / "python.html").read_text()


def test_site_works_from_disk_and_axe_finds_nothing_serious(
    site: Path, browser: Browser, some: Some[str]
) -> None:
    requests: list[str] = []
    for number, name in enumerate(some(PAGES, 3)):
        scheme = ("light", "dark")[number % 2]
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.call("Emulation.setEmulatedMedia", features=features)
        try:
            browser.open(site / f"{name}.html")
            ground = browser.run("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(255, 255, 255)") == (scheme == "light"), ground
            assert not browser.problems
            requests += browser.requests
            assert serious(browser) == [], (name, scheme)
        finally:
            browser.call("Emulation.setEmulatedMedia", features=[])
    assert {request.split(":")[0] for request in requests} <= {"file", "data"}


def serious(browser: Browser) -> list[tuple[str, list[str]]]:
    """Ask axe what is serious, unless it is missing."""
    if not AXE.exists():
        assert not os.environ.get("CI"), "with CI=1 the page's libraries must be there: make web"
        return []
    browser.run(AXE.read_text(encoding="utf-8") + "; 0")
    answer = browser.call(
        "Runtime.evaluate",
        expression="axe.run({ iframes: false }).then((found) => found.violations)",
        awaitPromise=True,
        returnByValue=True,
    )
    return [
        (one["id"], [node["html"][:150] for node in one["nodes"][:3]])
        for one in answer["result"]["value"]
        if one["impact"] in ("serious", "critical")
    ]


def test_site_is_searched_from_disk_and_fits_a_phone(
    site: Path, browser: Browser, some: Some[str]
) -> None:
    browser.open(site / "search.html", "?q=glossary")
    found = "[...document.querySelectorAll('#search-results li a')].map((one) => one.href).join()"
    deadline = time.monotonic() + 30
    while "/reference/glossary.html" not in browser.run(found):  # results come one by one
        assert time.monotonic() < deadline, browser.run(found)
        time.sleep(0.05)
    sizes = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.call("Emulation.setDeviceMetricsOverride", **sizes)
    try:
        for name in some(PAGES, 3):
            browser.open(site / f"{name}.html")
            assert browser.run("document.scrollingElement.scrollWidth") <= 390, name
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


def test_guard_dead_links_and_remote_addresses_are_found(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(
        '<h1 id="there"></h1><a href="#there"></a><a href="#gone"></a><a href="gone.html"></a>'
        '<a href="https://example.org"></a><img src="//example.org/a.png">',
        encoding="utf-8",
    )
    pages = {path: Page(path)}
    assert find_dead(pages) == ["page.html: #gone", "page.html: gone.html"]
    assert find_remote(pages, ["a { background: url('https://example.org/b.png') }"]) == [
        "//example.org/a.png",
        "https://example.org/b.png",
    ]
