"""The build hook: compiles the kernel and what calls it most often, for wheels and editable installs.

Without a C compiler the package is pure Python, and the same source is interpreted. ``python hatch_build.py``
compiles in place, with ``--checked`` so that the bounds of each array are looked at, for tests.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # compiled in place
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent
#: The modules whose types are in a ``.pxd`` beside each.
SOURCES = sorted(file.relative_to(ROOT).with_suffix(".py") for file in ROOT.glob("simsched/**/*.pxd"))
#: The code of arrays, which all of them share.
SHARED = "simsched.match.compiled_arrays"
DIRECTIVES = {
    "language_level": 3,
    "annotation_typing": False,  # the types are in the .pxd beside each
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "nonecheck": True,  # a policy of another package may hand over None
    "show_performance_hints": False,  # of what runs once
}


def compiled(root: Path = ROOT, *, checked: bool = False) -> list[Path]:
    """Compile the sources in place and return the libraries; [] without a compiler."""
    from Cython.Build import cythonize
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext
    from setuptools.errors import CCompilerError, ExecError, PlatformError

    flags = ["-O3", "-g0"] if sys.platform != "win32" else []
    with tempfile.TemporaryDirectory() as folder:
        extensions = [
            Extension(".".join(source.with_suffix("").parts), [str(root / source)], extra_compile_args=flags)
            for source in SOURCES
        ]
        extensions.append(Extension(SHARED, [f"{SHARED.rpartition('.')[2]}.c"], extra_compile_args=flags))
        directives = DIRECTIVES | ({"boundscheck": True, "initializedcheck": True} if checked else {})
        modules = cythonize(
            extensions,
            build_dir=folder,
            compiler_directives=directives,
            shared_utility_qualified_name=SHARED,
            quiet=True,
            force=True,
        )
        command = build_ext(Distribution({"name": "simsched", "ext_modules": modules}))
        command.build_lib, command.build_temp, command.parallel = str(root), folder, True
        command.ensure_finalized()
        libraries = [Path(file) for file in command.get_outputs()]
        try:
            command.run()
        except (CCompilerError, ExecError, PlatformError) as error:
            print(f"simsched: the kernel is not compiled, and runs are slower: {error}", file=sys.stderr)
            for library in libraries:  # compiled modules do not work beside modules that are not
                library.unlink(missing_ok=True)
            return []
        return libraries


class KernelHook(BuildHookInterface):  # type: ignore[misc]
    """Compiles the kernel before a wheel is packed, or in place for an editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the compiled kernel to the files of the wheel."""
        libraries = compiled(Path(self.root))
        if libraries and version != "editable":
            build_data["pure_python"], build_data["infer_tag"] = False, True
            build_data["force_include"].update(
                {str(file): str(file.relative_to(self.root)) for file in libraries}
            )


if __name__ == "__main__":
    print(*compiled(checked="--checked" in sys.argv), sep="\n")
