"""Optional libraries: the error of a feature whose library is missing, with the command to install it."""

from __future__ import annotations

import re

from simsched.errors import ConfigError

_EXTRA = re.compile(r"extra\s*==\s*['\"](\w+)['\"]")


def needs(feature: str, missing: ModuleNotFoundError, *, extra: str) -> ConfigError:
    """Return the error of a feature whose library is not installed; `extra` lists its requirements.

    The advice names the libraries and not ``simsched[plot]``, so that it is right for a clone, a wheel
    and any other environment, whether or not an index has the package.

    >>> needs("a picture", ModuleNotFoundError(name="matplotlib"), extra="plot").message
    'a picture needs matplotlib, which is not installed'
    """
    advice = " ".join(["pip install", *(f"'{one}'" for one in requirements(extra) or [str(missing.name)])])
    return ConfigError(f"{feature} needs {missing.name}, which is not installed", expected=advice)


def requirements(extra: str) -> list[str]:
    """Return the requirements of an extra from the metadata of the installed package, sorted."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        stated = requires("simsched") or []
    except PackageNotFoundError:  # run from a source tree that was never installed
        return []
    parts = (line.partition(";") for line in stated)
    return sorted(name.strip() for name, _, marker in parts if _EXTRA.findall(marker) == [extra])
