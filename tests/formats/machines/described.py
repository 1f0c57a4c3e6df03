"""One file of a site, read and understood by itself; and files as they are given together."""

from pathlib import Path

from simsched.formats.machines.read import describe_inputs, read_as, sort_out, understood


def described(kind, content, where, **options):
    return understood([read_as(kind, content, where, **options)])


def read_description(*paths, strict=False):
    return describe_inputs(sort_out([Path(path) for path in paths]), strict=strict)
