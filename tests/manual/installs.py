"""What an installer does with the project of an example package, in a folder of a test."""

from __future__ import annotations

import shutil
import tomllib


def install(project, site):
    """Copy the package of a project into a folder, with its entry points, so that they are found there."""
    described = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    info = site / f"{described['name'].replace('-', '_')}-{described['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {described['name']}\nVersion: {described['version']}\n")
    lines = []
    for group, points in described["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for package in (project / "src").iterdir():
        shutil.copytree(package, site / package.name)
