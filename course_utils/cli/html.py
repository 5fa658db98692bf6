"""HTML copies of executed notebooks, with folded outputs staying folded, and their index."""

import html
import re
from pathlib import Path

from course_utils.cli.execution import Execution
from course_utils.cli.normalise import write_atomically

# nbconvert's own page, except that an output folded in the notebook is folded here too.
TEMPLATE = """\
{%- extends 'lab/index.html.j2' -%}
{%- block output_group -%}
{%- if cell.metadata.get('jupyter', {}).get('outputs_hidden') -%}
<details class="course-folded"><summary>Show the output (guess first)</summary>
{{ super() }}
</details>
{%- else -%}
{{ super() }}
{%- endif -%}
{%- endblock output_group -%}
"""


def write_page(result: Execution, folder: Path) -> Path:
    """Write one executed notebook as HTML; returns the file."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(raw_template=TEMPLATE)
    # The pages must read without a network; only a page with formulas asks for a renderer.
    exporter.require_js_url = exporter.jquery_url = exporter.jupyter_widgets_base_url = ""
    exporter.widget_renderer_url = ""
    if not has_formulas(result.notebook):
        exporter.mathjax_url = ""
    exporter.embed_images = True  # figures are files beside the notebook, not beside the page
    about = {"metadata": {"name": result.path.stem, "path": str(result.path.parent)}}
    page, _ = exporter.from_notebook_node(result.notebook, resources=about)
    page = re.sub(r'href="(\d\d_\w+)\.ipynb', r'href="\1.html', page)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{result.path.stem}.html"
    write_atomically(target, re.sub(r'<script src="">\s*</script>', "", page))
    return target


def has_formulas(notebook) -> bool:
    """Whether any prose cell holds a TeX formula between dollar signs."""
    prose = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    return any(re.search(r"\$\$|\$[^\s$][^$\n]*\$", re.sub(r"`[^`]*`", "", text)) for text in prose)


def write_index(folder: Path) -> Path:
    """Write index.html, which links every page in the folder; returns it."""
    pages = sorted(p for p in folder.glob("*.html") if p.name != "index.html")
    links = "\n".join(
        f'<li><a href="{html.escape(p.name)}">{html.escape(p.stem)}</a></li>' for p in pages
    )
    text = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        "<title>From Tool Calls to Agents</title></head>\n"
        f"<body><h1>From Tool Calls to Agents</h1>\n<ol>\n{links}\n</ol></body></html>\n"
    )
    target = folder / "index.html"
    write_atomically(target, text)
    return target
