"""Times of the page in a browser: first paint, the answer, all heads, and frames a second.

    python benchmarks/page_speed.py [--rounds 5] [--out FILE]

Each round opens the page of the packaged model in a new tab of Chromium without a window: until
something is painted, until *elle* is there, until every English word was hidden, and until each of
the 24 heads was cut. Then the lines of a head are shown for a second in which the threshold of
lines moves with every frame. Medians are printed, with the least and the most.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pellucid
from pellucid.inside.show.model_page import model_page
from pellucid.lessons.walks.for_page import lessons_for

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))

from browser import Browser, find_browser, start_browser

SENTENCE = "The pizza came out of the oven and it tasted good."
PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
ANSWER = "document.querySelector('.out')?.textContent.includes('elle')"
HIDDEN = "document.querySelector('.costs') !== null"
TRIED = "document.querySelector('.heads [role=status]') !== null"
FRAMES = """(() => {
  const range = document.querySelector('input[type=range]');
  const begun = performance.now();
  window.frames_seen = 0;
  const step = () => {
    range.value = String(0.05 + 0.2 * Math.abs(Math.sin(window.frames_seen / 20)));
    range.dispatchEvent(new Event('input', { bubbles: true }));
    if (performance.now() - begun > 1000) return;
    window.frames_seen++;
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})()"""


def wait(browser: Browser, condition: str, since: float) -> float:
    """Return the seconds until a condition holds."""
    while not browser.run(f"Boolean({condition})"):
        if time.monotonic() - since > 120:
            raise TimeoutError(condition)
        time.sleep(0.01)
    return time.monotonic() - since


def measure(browser: Browser, path: Path) -> dict[str, float]:
    """Open the page once, and time it."""
    begun = time.monotonic()
    browser.open(path)
    found = {"answer": wait(browser, ANSWER, begun), "words hidden": wait(browser, HIDDEN, begun)}
    found["first paint"] = browser.run(PAINT) / 1000
    asked = time.monotonic()
    browser.run(
        "[...document.querySelectorAll('button')].find((one) =>"
        " one.textContent.startsWith('Where inside')).click()"
    )
    found["all heads tried"] = wait(browser, TRIED, asked)
    browser.run(FRAMES)
    time.sleep(1.5)
    found["frames a second"] = browser.run("window.frames_seen")
    return found


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    program = find_browser()
    if program is None:
        print("Chromium is missing. Install it, then run this again.")
        return 1
    demo = pellucid.load("demo")
    lessons, _ = lessons_for(demo.bundle)
    trace = demo.look(SENTENCE, beam=1)
    html = model_page(demo.bundle, trace, SENTENCE, lessons=lessons, name="demo")
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(html, encoding="utf-8")
        for number in range(options.rounds):
            with start_browser(program, Path(folder) / str(number)) as browser:
                rounds.append(measure(browser, path))
    figures = {}
    for name in rounds[0]:
        values = [one[name] for one in rounds]
        figures[name] = [statistics.median(values), min(values), max(values)]
        print(
            f"{name:18} {figures[name][0]:6.2f} ({figures[name][1]:.2f} to {figures[name][2]:.2f})"
        )
    if options.out:
        from pellucid.machine.hardware import describe_machine

        record = {"machine": describe_machine(), "megabytes": len(html) / 1e6, "figures": figures}
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
