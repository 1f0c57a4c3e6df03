"""Advice on an optional library holds where it is followed: outside an index that knows the package."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import requires

import pytest

from simsched.extras import needs, requirements


@pytest.mark.parametrize("extra", ["plot", "dask", "hpc", "rl"])
def test_advice_names_the_requirements_of_the_package(extra):
    stated = {line.partition(";")[0].strip() for line in requires("simsched") or [] if f"'{extra}'" in line}
    assert stated
    assert set(requirements(extra)) == stated
    error = needs("it", ModuleNotFoundError(name="lib"), extra=extra)
    assert error.expected == f"pip install {' '.join(repr(one) for one in sorted(stated))}"
    assert "simsched[" not in str(error)


@pytest.mark.slow
def test_a_picture_without_its_libraries_is_one_line(tmp_path):
    """The libraries are hidden by modules that are not there."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['bokeh'] = None\n")
    command = [
        sys.executable,
        "-m",
        "simsched",
        "run",
        "tiny",
        "first-steps",
        "-o",
        str(tmp_path / "run"),
        "--quiet",
    ]
    subprocess.run(command, check=True, cwd=tmp_path)
    command = [
        sys.executable,
        "-m",
        "simsched",
        "report",
        str(tmp_path / "run"),
        "-o",
        str(tmp_path / "page.html"),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 2
    assert "an HTML page needs bokeh" in done.stderr
    assert "pip install 'bokeh" in done.stderr
    assert len(done.stderr.splitlines()) == 1
