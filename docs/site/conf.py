"""The site's settings: `make site` builds it from the Markdown files, as they stand.

The sources are README.md, CONTRIBUTING.md, CHANGELOG.md, benchmarks/README.md and everything in
docs/. docs/README.md is the first page, and its lists of links are the table of contents.
`site_pages` writes what a Markdown file cannot hold: the commands, the Python API, the live page.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))


import pellucid

project = "Pellucid"
project_copyright = "the authors of Pellucid"
version = release = pellucid.__version__
language = "en"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "site_pages"]
root_doc = "index"
source_suffix = {".md": "markdown", ".ipynb": "markdown"}
include_patterns = ["docs/**", "*.md", "benchmarks/README.md"]
exclude_patterns = [".*", "build", "runs", "demo-run", "src", "tests", "web", "benchmarks/*/**"]
exclude_patterns += ["docs/progress.md"]  # for developers: it says what is open

myst_enable_extensions = ["dollarmath"]
myst_dmath_allow_digits = False
myst_heading_anchors = 4
myst_footnote_transition = False

default_role = "literal"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
napoleon_custom_sections = [("Shapes", "params_style"), "Source", "Differs"]
napoleon_use_rtype = False
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = "Pellucid"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_search_scorer = str(Path(__file__).parent / "static" / "scorer.js")
pygments_dark_style = "a11y-high-contrast-dark"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sphinx = False
