"""The documentation as a site: `make docs` builds it into docs/_build/html.

The source folder is the repository itself, so that links between pages, result files and the
README are the same on the site and in a plain view of the files. Nothing is fetched while building,
and the pages ask for nothing outside themselves: formulas become MathML.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT / "src"), str(HERE / "_extensions"), str(HERE)]

os.environ.setdefault("RIDGEFOLD_RATES", "default")  # plans are the same on every machine

import matplotlib as mpl  # noqa: E402

import ridgefold  # noqa: E402

mpl.use("agg")

project = "ridgefold"
author = "the ridgefold developers"
version = release = ridgefold.__version__
html_title = f"ridgefold {release}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "registry_tables",
]

root_doc = "docs/index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
include_patterns = [
    "docs/**",
    "benchmarks/results/*.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
]
exclude_patterns = ["docs/_build", "docs/_templates", ".venv*", "**/.*"]
nitpicky = False

# -- Markdown ------------------------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

# -- the library ---------------------------------------------------------------------------

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
templates_path = [str(HERE / "_templates")]

# -- the gallery ---------------------------------------------------------------------------


sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "docs/gallery",
    "filename_pattern": r".*\.py",
    "within_subsection_order": "reading_order.ReadingOrder",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "plot_gallery": True,
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "backreferences_dir": "docs/gallery/backreferences",
    "doc_module": ("ridgefold",),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "thumbnail_size": (400, 280),
    "write_computation_times": False,
}

# -- the look ------------------------------------------------------------------------------

html_additional_pages = {"index": "redirect.html"}
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["ridgefold.css"]
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#1f4e79", "color-brand-content": "#1f5f99"},
    "dark_css_variables": {"color-brand-primary": "#9cc4ec", "color-brand-content": "#8fbbe6"},
}
