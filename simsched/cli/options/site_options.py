"""``--site``: the folder of a site takes the place of CLUSTER and gives the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simsched.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from simsched.site.site import Site
    from simsched.workload.job import Workload

HELP = (
    "folder of a site, as `simsched site import` writes it: it takes the place of CLUSTER, so that every "
    "other argument is one that follows CLUSTER"
)
RUNS = ", and of --config; options given here override those of the site"


def add_site(parser: argparse.ArgumentParser, *, runs: bool = True) -> None:
    """Add ``--site``; `runs` where the verb simulates, and takes a configuration."""
    parser.add_argument("--site", metavar="DIR", help=HELP + (RUNS if runs else ""))


def site_of(args: argparse.Namespace) -> Site | None:
    """Return the site of ``--site``; None where it is not given.  The machine is not read yet.

    Raises
    ------
    ConfigError, FormatError
        if the folder is not a site, or ``--config`` or ``--cluster`` is given as well.
    """
    if args.site is None:
        return None
    from simsched.site.site_folder import load_site

    for option, use in (("config", "its queues.toml, or options"), ("clusters", "--site alone")):
        if getattr(args, option, None):
            name = "--cluster" if option == "clusters" else f"--{option}"
            raise ConfigError(f"{name} and --site are both given", where=name, expected=use)
    return load_site(args.site)


def place_site(args: argparse.Namespace, first: str, *rest: str) -> Site | None:
    """Move the positional arguments behind CLUSTER, and return the site.

    With ``--site`` the value of the positional argument `first` (CLUSTER) is that of the one after it, and
    so on through `rest`; `first` becomes the file of the site's machine.  Logs are
    read as `log_use` says.

    Raises
    ------
    ConfigError
        if there is one argument too many: a CLUSTER beside ``--site``.
    """
    site = site_of(args)
    if site is None:
        return None
    given = [getattr(args, name) for name in (first, *rest)]
    if given[-1] is not None:
        refuse_cluster(args.site, given[0])
    for name, value in zip(rest, given, strict=False):
        setattr(args, name, value)
    setattr(args, first, str(site.cluster_file))
    if hasattr(args, "on_site"):
        from simsched.site.log_use import reading_on

        args.on_site = reading_on(site)
    return site


def noted_use(args: argparse.Namespace, site: Site | None) -> Callable[[Workload], str] | None:
    """Return a function that notes and returns the sentence on the use of a log; None without a site."""
    if site is None:
        return None

    def noted(workload: Workload) -> str:
        from simsched.cli.support.messages import note
        from simsched.site.log_use import use_sentence

        sentence = use_sentence(site, workload, mapped=bool(args.map))
        if sentence:
            note(f"{workload.source or args.workload}: {sentence}", of_input=True)
        return sentence

    return noted


def require(args: argparse.Namespace, **names: str) -> None:
    """Raise UsageError if positional arguments (argument → its name in the help) are missing.

    argparse cannot: which of them a command line needs depends on ``--site``.
    """
    missing = [metavar for name, metavar in names.items() if getattr(args, name) is None]
    if missing:
        from simsched.cli.support.parser import UsageError

        message = f"the following arguments are required: {', '.join(missing)}"
        raise UsageError(f"simsched {args.verb}", message)


def refuse_words(site: str, words: Sequence[str]) -> None:
    """Raise ConfigError if the first request is the name of a bundled cluster, which `site` replaces."""
    from simsched.bundled import bundled

    if words and words[0] in bundled("clusters"):
        refuse_cluster(site, words[0])


def refuse_cluster(site: str, cluster: object) -> None:
    """Raise ConfigError for a CLUSTER beside ``--site``."""
    raise ConfigError(
        f"the cluster {cluster} and the site {site} are both given",
        where="--site",
        expected="one of them: with --site, the arguments are those after CLUSTER",
    )
