"""The look of a report: light and dark, on a wide screen and on a phone."""

from __future__ import annotations

from pellucid.train.report.figures import PALETTES

_STYLE = """
:root { color-scheme: light dark; --ground: #ffffff; --panel: #f4f4f4; %(light)s }
@media (prefers-color-scheme: dark) {
  :root { --ground: #161616; --panel: #232323; %(dark)s }
}
* { box-sizing: border-box }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif;
       max-width: 72rem; margin: 0 auto; padding: 1rem; color: var(--ink);
       background: var(--ground); overflow-wrap: anywhere }
h1 { font-size: 1.7rem } h2 { font-size: 1.25rem; margin-top: 2.5rem } h3 { font-size: 1rem }
h1, h2, h3 { line-height: 1.25; margin-bottom: .5rem }
p { margin: .5rem 0; max-width: 46rem }
.note, figcaption small { color: var(--faint); font-size: .875rem }
.tiles { display: grid; grid-template-columns: repeat(4, 1fr); gap: .75rem; margin: 1rem 0 }
.tiles div { background: var(--panel); border-radius: .4rem; padding: .6rem .8rem }
.tiles dt { color: var(--faint); font-size: .875rem } .tiles dd { margin: 0; font-size: 1.35rem }
.curves { display: grid; gap: 1.5rem;
          grid-template-columns: repeat(auto-fit, minmax(min(100%%, 21rem), 1fr)) }
figure { margin: 0; min-width: 0 } figcaption { font-weight: 600; margin-bottom: .25rem }
figcaption small { font-weight: 400 }
svg { display: block; width: 100%%; height: auto; stroke-linejoin: round }
svg text { font-family: inherit !important }
.scroll { overflow-x: auto }
table { border-collapse: collapse; margin: .5rem 0; font-size: .9375rem }
caption { text-align: left; font-weight: 600; padding-bottom: .25rem }
th, td { padding: .25rem .75rem .25rem 0; text-align: left; vertical-align: top;
         border-bottom: 1px solid var(--line) }
th { font-weight: 600 } td.number, th.number { text-align: right; white-space: nowrap;
         font-variant-numeric: tabular-nums; padding: .25rem .4rem }
.facts { columns: 26rem 2; column-gap: 2.5rem }
.facts table { width: 100%%; table-layout: fixed; break-inside: avoid; margin: 0 0 1.25rem }
.facts th { font-weight: 400; width: 40%%; color: var(--faint) }
.sample { border-left: 3px solid var(--line); padding-left: 1rem; margin: 1.25rem 0 }
.sample dl { display: grid; grid-template-columns: 9.5rem 1fr; gap: .2rem .75rem; margin: 0 }
.sample dt { color: var(--faint) } .sample dd { margin: 0 }
@media (max-width: 36rem) {
  .tiles { grid-template-columns: repeat(2, 1fr) }
  .sample dl { grid-template-columns: 1fr } .sample dd { margin-bottom: .4rem }
}
pre { background: var(--panel); padding: .75rem; border-radius: .4rem; overflow-x: auto;
      font: .875rem/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
      white-space: pre-wrap }
summary { cursor: pointer; padding: .4rem 0; font-weight: 600 }
:focus-visible { outline: 2px solid var(--first); outline-offset: 2px }
"""


def style_sheet() -> str:
    """Make the style sheet of a page, with the colors of the figures as variables."""
    colors = {
        name: "; ".join(f"--{color}: {value}" for color, value in palette.items())
        for name, palette in PALETTES.items()
    }
    return _STYLE % colors
