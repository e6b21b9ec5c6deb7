"""Configuration of Sphinx: the pages are CommonMark with tables, as the repository's host shows them."""

project = "Odradek"
html_title = "Odradek"
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
extensions = ["myst_parser"]
root_doc = "index"
myst_heading_anchors = 6
myst_enable_extensions = ["strikethrough"]
exclude_patterns: list[str] = []
suppress_warnings = [
    "misc.highlighting_failure",  # blocks with an ellipsis
    "myst.header",  # a README that begins with a small heading
]
