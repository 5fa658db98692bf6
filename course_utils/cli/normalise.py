"""Bring an executed notebook into its one stored form, so that a diff shows only real changes."""

import hashlib
import json
import os
import tempfile
from pathlib import Path

KERNELSPEC = {"name": "python3", "display_name": "Python 3", "language": "python"}
LANGUAGE = {"name": "python"}
CELL_METADATA = ("slideshow", "tags")
JUPYTER_METADATA = ("outputs_hidden", "source_hidden")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def normalise(notebook) -> None:
    """Normalise a notebook in place.

    Counts run 1..N; cell ids are hashes of the cell's type and source; metadata keeps the
    kernel's and the language's name, tags, slide types and folding; errors keep one line.
    Widget views go, because without their state a reader sees an error in their place (the
    text beside them stays).
    """
    notebook.metadata = type(notebook.metadata)(
        {"kernelspec": dict(KERNELSPEC), "language_info": dict(LANGUAGE)}
    )
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    number = 0
    for cell, identity in zip(notebook.cells, cell_ids(notebook), strict=True):
        cell["id"] = identity
        cell.metadata = cell_metadata(cell.metadata)
        if cell.cell_type != "code":
            continue
        if cell.source.strip():
            number += 1
        cell.execution_count = number if cell.source.strip() else None
        cell.outputs = [o for o in (_output(output, number) for output in cell.outputs) if o]


def cell_ids(notebook) -> list[str]:
    """Ids that depend on type and source alone; a repeated cell gets -2, -3, … appended."""
    seen: dict[str, int] = {}
    ids = []
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:12]
        seen[digest] = seen.get(digest, 0) + 1
        ids.append(digest if seen[digest] == 1 else f"{digest}-{seen[digest]}")
    return ids


def cell_metadata(metadata):
    """The part of a cell's metadata that is stored, keys sorted."""
    kept = {key: metadata[key] for key in CELL_METADATA if metadata.get(key)}
    folding = metadata.get("jupyter", {})
    folded = {key: True for key in JUPYTER_METADATA if folding.get(key)}
    if folded:
        kept["jupyter"] = folded
    return type(metadata)(dict(sorted(kept.items())))


def _output(output, number: int):
    """One output as it is stored, or None if nothing of it is kept."""
    if output.output_type == "error":
        output.traceback = [f"{output.ename}: {output.evalue}".splitlines()[0]]
    if output.output_type == "execute_result":
        output.execution_count = number
    if "data" in output:
        output.data.pop(WIDGET_VIEW, None)
        output.metadata.pop(WIDGET_VIEW, None)
        if not output.data:
            return None
    return output


def to_text(notebook) -> str:
    """The stored text of a notebook: nbformat's layout, one space of indent, sorted keys."""
    import nbformat

    nbformat.validate(notebook)
    split = nbformat.v4.nbjson.split_lines(nbformat.from_dict(json.loads(json.dumps(notebook))))
    return json.dumps(split, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old text or the new one, never a half of it.

    Raises OSError, which names the file, if that is impossible.
    """
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException as error:
        os.unlink(temporary)
        if (
            isinstance(error, OSError) and error.strerror
        ):  # a full disk says no name, others that of `temporary`
            error.filename = str(path)
        raise
