"""Take pictures of the page: the few that the documentation shows, or every view and lesson.

    python docs/make_page_pictures.py
    python docs/make_page_pictures.py --all DIR

The first needs a browser and writes to docs/pictures. The second takes each view and a screen of
each lesson, light and dark, 1,400 and 390 pixels wide, in their whole height.
"""

from __future__ import annotations

import argparse
import base64
import io
import re
import shutil
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

from PIL import Image

import pellucid
from pellucid.inside.show.model_page import model_page
from pellucid.lessons.walks.for_page import lessons_for

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "tests" / "shared"))

from browser import Browser, find_browser, start_browser  # noqa: E402
from page_reader import PageReader  # noqa: E402

SENTENCE = "The pizza came out of the oven and it tasted good."
AREA = quote("the European Economic Area")
WIDE, PHONE = 1400, 390

VIEWS = {
    "why": "view=why",
    "struck": "view=why&change=word+1",
    "measures": "view=why&show=measures",
    "look": "view=look",
    "cross": f"view=look&head=decoder.1.cross.0&text={AREA}",
    "map": "view=look&show=map",
    "arithmetic": "view=look&open=1",
    "change": "view=change&change=cut+decoder.1.cross.0",
    "words": "view=change&show=words",
    "beam": "view=change&show=decoding&decode=beam&beam=4",
    "learn": "view=learn",
}
LESSONS = {
    "lesson-lecture": "view=learn&lesson=lecture&screen=2",
    "lesson-slides": "view=learn&lesson=slides&screen=1",
    "lesson-notes": "view=learn&lesson=notes&screen=32",
    "lesson-objectives": "view=learn&lesson=objectives&screen=12",
    "lesson-study-notes": "view=learn&lesson=study-notes&screen=14",
    "lesson-grow": "view=learn&lesson=grow",
}
SHOWN = {
    **{name: (VIEWS[name], 900) for name in ("why", "look", "arithmetic", "change")},
    "lesson": (LESSONS["lesson-slides"], 1100),
}
"""The pictures of the documentation: name, link, and height in pixels."""


def write_page(folder: Path) -> Path:
    """Write the page of `demo`, with its lessons."""
    translator = pellucid.load("demo")
    bundle = translator.bundle
    lessons, reason = lessons_for(bundle)
    assert not reason, reason
    html = model_page(
        bundle,
        translator.look(SENTENCE, beam=1),
        SENTENCE,
        lessons=lessons,
        name="demo",
    )
    path = folder / "page.html"
    path.write_text(html, encoding="utf-8")
    return path


def take(
    browser: Browser, page: Path, link: str, *, width: int, scheme: str, height: int | None
) -> bytes:
    """Take a picture of a state of the page, of its whole height unless one is given."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    features.append({"name": "prefers-reduced-motion", "value": "reduce"})
    browser.call("Emulation.setEmulatedMedia", features=features)
    sizes = {"width": width, "height": height or 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **sizes)
    reader = PageReader(browser, page, f"#{link}")
    for busy in ("Measuring…", "Hiding each word"):
        reader.wait(f"!document.getElementById('panel').textContent.includes('{busy}')")
    if "view=look" in link:
        # The head that the pronoun needs is found by trying all.
        reader.click_text("Try all heads")
        reader.wait("/ of \\d+ heads|None of/.test(document.querySelector('.heads').textContent)")
        needed = [] if "head=" in link else reader.texts("button.head.needed")
        for number in range(len(needed)):
            reader.run(f"document.querySelectorAll('button.head.needed')[{number}].click()")
            reader.click_text("Try its ")
            reader.wait("!document.querySelector('progress')")
            # As the page does, the picture shows a head of which a line is needed too.
            if any(
                re.match(r"[1-9]\d* of \d+ lines", one) for one in reader.texts("[role=status]")
            ):
                break
        reader.run("scrollTo(0, 0)")
    if "lesson=grow" in link:
        reader.wait("document.getElementById('panel').textContent.includes('for good')")
    if button := reader.run("document.querySelector('article .button.main')?.textContent"):
        reader.click_text(button)
    whole = int(reader.run("document.documentElement.scrollHeight"))
    clip = {"x": 0, "y": 0, "width": width, "height": height or whole, "scale": 1}
    shot = browser.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    return base64.b64decode(shot["data"])


def packed(png: bytes) -> bytes:
    """Keep 256 colors, which halves the file."""
    into = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(
        into, "PNG", optimize=True
    )
    return into.getvalue()


def main() -> None:
    """Take the pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", type=Path, metavar="DIR", help="take everything, into this folder")
    parser.add_argument("--only", metavar="NAME", help="take only what has this in its name")
    options = parser.parse_args()
    program = find_browser()
    if program is None:
        sys.exit("No browser is found: apt-get install --no-install-recommends chromium")
    wanted: dict[Path, dict[str, object]] = {}
    if options.all is None:
        for name, (link, height) in SHOWN.items():
            path = HERE / "pictures" / f"page-{name}.png"
            wanted[path] = {"link": link, "width": WIDE, "scheme": "light", "height": height}
        dark = {"link": VIEWS["look"], "width": WIDE, "scheme": "dark", "height": 900}
        wanted[HERE / "pictures" / "page-dark.png"] = dark
    else:
        options.all.mkdir(parents=True, exist_ok=True)
        for name, link in {**VIEWS, **LESSONS}.items():
            for scheme in ("light", "dark"):
                for width in (WIDE, PHONE):
                    path = options.all / f"{name}-{scheme}-{width}.png"
                    wanted[path] = {"link": link, "width": width, "scheme": scheme, "height": None}
    folder = Path(tempfile.mkdtemp())
    try:
        page = write_page(folder)
        with start_browser(program, folder / "profile") as browser:
            for path, how in wanted.items():
                if options.only is None or options.only in path.name:
                    path.write_bytes(packed(take(browser, page, **how)))  # type: ignore[arg-type]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
