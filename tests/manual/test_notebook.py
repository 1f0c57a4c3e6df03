"""The notebook ``analysis/tour.ipynb`` runs from its first cell to its last, and shows what it says."""

from __future__ import annotations

import base64
import re
import struct

import pytest

from tests import REPOSITORY

NOTEBOOK = REPOSITORY / "analysis" / "tour.ipynb"


def outputs(cells, kind):
    """The outputs of one media type, by cell."""
    return [
        output["data"][kind]
        for cell in cells
        for output in cell.get("outputs", ())
        if kind in output.get("data", {})
    ]


def facts(cells):
    """What the cells print and return: the words of a text, and the cells of a table."""
    found = []
    for output in (output for cell in cells for output in cell.get("outputs", ())):
        data = output.get("data", {})
        if "text/html" in data:
            found.append(re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", data["text/html"]))
        elif "image/png" not in data:
            found.append((output.get("text") or data["text/plain"]).split())
    return found


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore")  # those of the kernel's own libraries
def test_the_notebook(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setenv("HOME", str(tmp_path))
    stored = nbformat.read(NOTEBOOK, as_version=4)
    fresh = nbformat.read(NOTEBOOK, as_version=4)
    for cell in fresh.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    client = nbclient.NotebookClient(
        fresh, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    code = [cell for cell in fresh.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [output for cell in code for output in cell.outputs if output.output_type == "error"]
    # What it showed when it was written is what it shows now, whatever the width of a line.
    assert facts(code) == facts(stored.cells)
    pictures = [base64.b64decode(text) for text in outputs(code, "image/png")]
    assert len(pictures) == len(outputs(stored.cells, "image/png")) >= 2
    for picture in pictures:
        width, height = struct.unpack(">II", picture[16:24])
        assert width > 400
        assert height > 200
        assert len(picture) > 10_000  # not an empty sheet
    assert len(outputs(code, "text/html")) >= 5
