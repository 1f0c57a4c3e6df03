"""One file of a site, read and understood by itself."""

from simsched.formats.machines.read import read_as, understood


def described(kind, content, where, **options):
    return understood([read_as(kind, content, where, **options)])
