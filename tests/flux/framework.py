"""Stands in for the native parts of flux-core, so that the Python files of its scheduler framework run.

What is here follows the documentation of these modules.  `stubs` has all that the framework's files import;
`own_framework` also replaces the framework itself, by the part of its interface that a pool sees.
"""

from __future__ import annotations

import sys
import types
from types import SimpleNamespace

from simsched.formats.rfc.hostlist import Hostlist as OurHostlist
from simsched.formats.rfc.idset import Idset


class IDset(set):
    """flux.idset.IDset: a set of numbers that is written as in RFC 22."""

    def __init__(self, given=""):
        super().__init__(Idset.parse(given) if isinstance(given, str) and given else given or ())

    def __iter__(self):
        return iter(sorted(set(self.copy())))

    def __str__(self):
        return str(Idset.from_ids(sorted(self.copy()))) if self else ""

    def encode(self, flags=0):
        return f"[{self}]" if len(self) > 1 else str(self)


class Hostlist(list):
    """flux.hostlist.Hostlist."""

    def __init__(self, given=""):
        texts = [given] if isinstance(given, str) else list(given)
        super().__init__(host for text in texts if text for host in OurHostlist.parse(text))

    def __str__(self):
        return str(OurHostlist.from_hosts(self))


class JobID(int):
    """flux.job.JobID."""

    f58 = property(lambda self: f"ƒ{int(self)}")


class Watcher:
    """A watcher of the reactor, which the tests do not run."""

    def __getattr__(self, name):
        return lambda *args, **more: None


class Handle:
    """A Flux handle that keeps the responses."""

    handle = None

    def __init__(self):
        self.responses = []

    def respond(self, msg, payload=None):
        self.responses.append((msg, payload))

    def respond_error(self, msg, errnum, text=None):
        self.responses.append((msg, errnum, text))

    def __getattr__(self, name):
        if name.endswith("_watcher_create"):
            return lambda *args, **more: Watcher()
        raise AttributeError(name)


class Log:
    """A logger of a broker module."""

    level = level_name = "info"

    def __init__(self):
        self.lines = []

    def __call__(self, level, msg):
        self.lines.append(msg)

    def __getattr__(self, name):
        return self.lines.append


class BrokerModule:
    """flux.brokermod.BrokerModule."""

    def __init__(self, h, *args):
        self.handle, self.args, self.log = h, args, Log()


def request_handler(topic, prefix=True, allow_guest=False):
    return lambda function: function


def module(name, **values):
    made = types.ModuleType(name)
    vars(made).update(values)
    return made


def stubs():
    """The native modules, and those that wrap them, by name."""
    return {
        "_flux": module("_flux", __path__=[]),
        "_flux._core": module("_flux._core", ffi=None, lib=SimpleNamespace(
            flux_get_reactor=lambda handle: None, flux_reactor_now=lambda reactor: 1000.0
        )),
        "flux.idset": module("flux.idset", IDset=IDset, IDSET_FLAG_BRACKETS=1, IDSET_FLAG_RANGE=2),
        "flux.hostlist": module("flux.hostlist", Hostlist=Hostlist),
        "flux.job": module("flux.job", JobID=JobID, job_raise_async=None),
        "flux.kvs": module("flux.kvs", KVSTxn=None, commit_async=None, get_key_direct=None),
        "flux.constants": module("flux.constants", FLUX_RPC_STREAMING=0),
        "flux.brokermod": module(
            "flux.brokermod", BrokerModule=BrokerModule, BrokerLogger=Log, request_handler=request_handler
        ),
    }  # fmt: skip


def install(monkeypatch, modules):
    """Let `import flux…` find these modules alone."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("flux", "_flux")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("simsched.flux.flux_pool",):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name, made in modules.items():
        monkeypatch.setitem(sys.modules, name, made)
    import simsched.flux

    monkeypatch.delattr(simsched.flux, "flux_pool", raising=False)


def their_framework(monkeypatch, folder):
    """Let the framework's own files be imported from a folder; return `flux.scheduler`."""
    flux = module("flux", __path__=[str(folder / "flux")])
    resource = module("flux.resource", __path__=[str(folder / "flux" / "resource")])
    install(monkeypatch, {**stubs(), "flux": flux, "flux.resource": resource})
    from flux.resource.Rv1Set import Rv1Set

    resource.Rv1Set = Rv1Set
    from flux.resource.ResourcePoolImplementation import InfeasibleRequest, InsufficientResources

    resource.InfeasibleRequest, resource.InsufficientResources = InfeasibleRequest, InsufficientResources
    import flux.scheduler

    return flux.scheduler


class InsufficientResources(OSError):  # noqa: N818 (the framework's name)
    """Not now."""


class InfeasibleRequest(OSError):  # noqa: N818
    """Never."""


class ResourcePoolImplementation:
    """The base class of implementations, as documented: a counter of changes, a log, the expiration."""

    generation = 0

    def log(self, level, msg):
        """Do nothing."""

    def _bump(self):
        self.generation += 1


class ResourcePool:
    """The wrapper of an implementation, as documented."""

    def __init__(self, given=None, version=1, log=None):
        self.impl, self.version = given, version

    @classmethod
    def _from_impl(cls, impl):
        made = cls.__new__(cls)
        ResourcePool.__init__(made, impl)
        return made

    def alloc(self, jobid, request):
        return self._from_impl(self.impl.alloc(jobid, request))

    def copy(self):
        return self._from_impl(self.impl.copy())

    def __getattr__(self, name):
        return getattr(self.impl, name)


class Rv1Set:
    """A set of resources, of which the tests read the document."""

    def __init__(self, document):
        self._document = document

    def to_dict(self):
        return self._document


def own_framework(monkeypatch):
    """Stand in for the framework itself."""
    implementation = module(
        "flux.resource.ResourcePoolImplementation",
        InfeasibleRequest=InfeasibleRequest,
        InsufficientResources=InsufficientResources,
        ResourcePoolImplementation=ResourcePoolImplementation,
    )
    install(monkeypatch, {
        "flux": module("flux", __path__=[]),
        "flux.resource": module("flux.resource", __path__=[]),
        "flux.resource.ResourcePool": module("flux.resource.ResourcePool", ResourcePool=ResourcePool),
        "flux.resource.ResourcePoolImplementation": implementation,
        "flux.resource.Rv1Set": module("flux.resource.Rv1Set", Rv1Set=Rv1Set),
    })  # fmt: skip
