"""hwloc XML, versions 1 to 3: the inside of one node (``lstopo --of xml``), multiplied as the caller asks.

Packages (sockets) and NUMA nodes become localities where the cores divide evenly over them, as they do on
almost all hardware.  A NUMA node of version 1 contains packages or is in one; from version 2 on it is beside
the cores that it serves.  Gpus are counted as Flux counts them: devices of CUDA, NVML, OpenCL, RSMI and
LevelZero, once per PCI device, although several of these interfaces may show it.

A topology may list objects that processes may not use, because it was made with ``--disallowed`` (before
version 2, ``--whole-system``): cores outside ``allowed_cpuset`` or ``online_cpuset``, and NUMA nodes outside
``allowed_nodeset``.  They are left out, as hwloc leaves them out by default.
"""

from __future__ import annotations

import re
from collections import Counter
from math import prod
from typing import TYPE_CHECKING

from simsched.errors import FormatError, clip
from simsched.formats.cluster.recipe import Amount, Level, PoolSpec
from simsched.formats.machines.site_facts import Node, SiteFacts, node_of, usable_host
from simsched.formats.text.excerpts import place
from simsched.formats.text.xml_tree import Element, parse_xml

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from simsched.formats.machines.description import NoteCollector

FORMAT = "hwloc XML"
BACKENDS = ("CUDA", "NVML", "OpenCL", "RSMI", "LevelZero")
_PROCESSORS = ("0302", "0380", "1200")
"""PCI classes of accelerators: 3D controller, other display controller, processing accelerator."""
_DISPLAY = "0300"
MIB = 2**20


def read_hwloc(text: str, where: str, notes: NoteCollector) -> SiteFacts:
    """Return the machine of the one node that a topology describes.

    Raises
    ------
    FormatError
        if the text is not XML of hwloc or has no cores; under strict `notes` for the first part that is not
        understood.
    """
    root = parse_xml(text, where, doctype="topology")
    if root.name != "topology":
        raise FormatError(f"<{clip(root.name)}> is not a topology", where=where, expected="<topology>")
    machines = [element for element in root.all("object") if element.attribute("type") == "Machine"]
    if len(machines) != 1:
        text, expected = f"the topology has {len(machines)} machines", 'one <object type="Machine">'
        raise FormatError(text, where=where, expected=expected)
    name = _info(machines[0], "HostName") or _info(machines[0], "Hostname") or ""
    host = name if name and usable_host(name, where, notes) else "node0"
    node = _Reader(machines[0], where, notes).node()
    notes.assumed(f"one node, {host}; cluster make --like FILE --hosts HOSTLIST makes several", where)
    return SiteFacts(form=FORMAT, notes=notes, nodes={host: node})


def _walk(element: Element) -> Iterator[Element]:
    """Yield the objects inside an object, each before those inside it."""
    for child in element.all("object"):
        yield child
        yield from _walk(child)


def _amount(size: int) -> Amount:
    """Return a number of bytes in MiB, rounded down."""
    return Amount(size // MIB, "MiB") if size >= MIB else Amount(size, "B")


def _parts(levels: Iterable[Level]) -> int:
    return prod(level.count for level in levels)


def _info(element: Element, name: str) -> str | None:
    found = (info for info in element.all("info") if info.attribute("name") == name)
    return next((info.attribute("value") for info in found), None)


def _bitmap(text: str) -> int:
    """Return the bits of a set of hwloc: words of 32 bits, of which the first may be repeated for ever.

    >>> [hex(_bitmap(text)) for text in ("0x3", "0x00000001,0x00000000", "0x1,,0xf")]
    ['0x3', '0x100000000', '0x1000000000000000f']
    >>> _bitmap("0xf...f"), hex(_bitmap("0xf...f,0x00000001") & 0xfffffffff)
    (-1, '0xf00000001')
    """
    first, *words = text.split(",")
    bits = -1 if first == "0xf...f" else int(first, 16)
    for word in words:
        bits = bits << 32 | int(word or "0", 16)
    return bits


def _bit(element: Element) -> int:
    """Return the set that an object is by its number; -1, all sets, without one."""
    index = element.attribute("os_index") or ""
    return 1 << int(index) if re.fullmatch(r"[0-9]{1,6}", index) else -1


class _Reader:
    """Reads one machine; `parents` has the object around each object, by identity."""

    def __init__(self, machine: Element, where: str, notes: NoteCollector) -> None:
        self.machine, self.where, self.notes = machine, where, notes
        self.cpus = self._set(machine, "allowed_cpuset", -1) & self._set(machine, "online_cpuset", -1)
        self.nodes = self._set(machine, "allowed_nodeset", -1)
        every = list(_walk(machine))
        self.objects = [element for element in every if self._is_allowed(element)]
        self._note_disallowed(every)
        self.parents = {id(child): parent for parent in (machine, *every) for child in parent.children}

    def _set(self, element: Element, key: str, otherwise: int) -> int:
        """Return the set that an attribute states; `otherwise` without it."""
        text = element.attribute(key)
        if text is None:
            return otherwise
        try:
            return _bitmap(text.strip())
        except ValueError:
            expected = "a set, such as 0x0000000f"
            self.notes.fault(f"{key} is {clip(text)!r}", self.at(element), expected, cause=key)
            return otherwise

    def _allowed_cpus(self, element: Element) -> int:
        """Return the processing units of an object that may be used; -1 if it does not state its own."""
        alone = _bit(element) if element.attribute("type") == "PU" else -1
        cpus = self._set(element, "cpuset", alone) & self.cpus
        for key in ("allowed_cpuset", "online_cpuset"):  # of each object before version 2
            cpus &= self._set(element, key, -1)
        return cpus

    def _is_allowed(self, element: Element) -> bool:
        """Whether processes may use an object; one of another type than these stays."""
        kind = element.attribute("type")
        if kind == "NUMANode":
            own = self._set(element, "allowed_nodeset", -1)
            return self._set(element, "nodeset", _bit(element)) & self.nodes & own != 0
        if kind in ("PU", "Core", "Package", "Socket"):
            inside = [child for child in _walk(element) if child.attribute("type") == "PU"]
            if inside and element.attribute("cpuset") is None:
                return any(map(self._allowed_cpus, inside))
            return self._allowed_cpus(element) != 0
        return True

    def _note_disallowed(self, every: list[Element]) -> None:
        """Note how many objects are left out, and how many processing units are not in the file."""
        before, after = (Counter(one.attribute("type") for one in some) for some in (every, self.objects))
        lost = [
            f"{before[kind] - after[kind]} of {before[kind]} {words}"
            for kind, words in (("Core", "cores"), ("PU", "processing units"), ("NUMANode", "NUMA nodes"))
            if before[kind] > after[kind]
        ]
        if lost:
            keys = ("allowed_cpuset", "online_cpuset", "allowed_nodeset")
            stated = ", ".join(
                f"{key} {clip(text)}" for key in keys if (text := self.machine.attribute(key)) is not None
            )
            by = f" ({stated})" if stated else ""
            self.notes.left_out(f"{', '.join(lost)}: not allowed or offline{by}", self.at(self.machine))
        complete = self._set(self.machine, "complete_cpuset", 0)
        missing = complete & ~self._set(self.machine, "cpuset", -1)
        if complete > 0 and missing:
            text = f"{missing.bit_count()} processing units that the topology does not list (complete_cpuset)"
            self.notes.left_out(text, self.at(self.machine))

    def of_type(self, *kinds: str) -> list[Element]:
        return [element for element in self.objects if element.attribute("type") in kinds]

    def at(self, element: Element) -> str:
        return place(self.where, element.line, element.column)

    def node(self) -> Node:
        cores = len(self.of_type("Core"))
        units = len(self.of_type("PU"))
        if not cores and units:
            text = f"the topology has no cores: each of its {units} processing units is one"
            self.notes.assumed(text, self.where)
            cores = units
        elif units > cores:
            self.notes.left_out(f"{units} hardware threads of {cores} cores", self.where)
        if not cores:
            lost = " that are allowed and online" if self.cpus != -1 else ""
            expected = "objects of type Core or PU"
            raise FormatError(f"the topology has no cores{lost}", where=self.where, expected=expected)
        locality, gpus = self._locality(cores), self._gpus()
        if len(locality) > 1 and gpus % _parts(locality) and gpus % locality[0].count == 0:
            # a recipe would put all gpus on the first NUMA nodes, which may be those of one socket
            text = f"NUMA nodes: {gpus} gpus divide evenly over the sockets, but not over them"
            self.notes.left_out(text, self.where)
            locality = locality[:1]
        return node_of(cores=cores, gpus=gpus, locality=locality, pools=tuple(self._memory(locality)))

    # -- localities

    def _locality(self, cores: int) -> tuple[Level, ...]:
        """Return sockets and NUMA domains, outermost first, as far as the cores divide over them."""
        packages = self.of_type("Package", "Socket")
        # memory devices such as CXL are NUMA nodes without processors
        domains = [node for node in self.of_type("NUMANode") if self._allowed_cpus(node)]
        levels: list[Level] = []
        if len(packages) > 1:
            levels.append(Level("socket", len(packages)))
        per_socket, rest = divmod(len(domains), max(1, len(packages)))
        if len(domains) > 1 and not rest and per_socket > 1:
            levels.append(Level("numa", per_socket))
        elif len(domains) > 1 and (rest or len(packages) < 2):
            text = f"{len(domains)} NUMA nodes, which do not divide over the packages"
            self.notes.left_out(text, self.where)
        inside = {id(core) for core in self.of_type("Core")}
        of_packages = {sum(id(child) in inside for child in _walk(one)) for one in packages}
        while levels and (cores % _parts(levels) or len(of_packages) > 1):
            lost = levels.pop()
            text = f"{lost.count} {lost.type}s: the cores do not divide evenly over them"
            self.notes.left_out(text, self.where)
        return tuple(levels)

    # -- memory and devices

    def _memory(self, locality: tuple[Level, ...]) -> Iterator[PoolSpec]:
        """Yield the memory of each domain if all have the same, else that of the whole node."""
        sizes = [size for node in (self.machine, *self.objects) if (size := self._bytes(node))]
        if not sizes:
            self.notes.left_out("memory, which the topology does not state", self.where)
            return
        level = locality[-1] if locality else None
        if level is not None and len(sizes) == _parts(locality) and len(set(sizes)) == 1:
            yield PoolSpec(type="memory", amount=_amount(sizes[0]), within=level.type)
        else:
            yield PoolSpec(type="memory", amount=_amount(sum(sizes)))

    def _bytes(self, element: Element) -> int:
        """Return the memory of an object: an attribute, or in the oldest files an element."""
        given = element.attribute("local_memory") or "0"
        if not re.fullmatch(r"[0-9]{1,19}", given):
            self.notes.fault(f"local_memory is {clip(given)!r}", self.at(element), "a number of bytes")
            return 0
        return int(given)

    def _gpus(self) -> int:
        """Return the number of gpus; one device that several interfaces show counts once."""
        shown: dict[int, str] = {}
        count = 0
        for device in self.of_type("OSDev"):
            backend = _info(device, "Backend") or device.attribute("subtype") or ""
            if backend not in BACKENDS:
                continue
            card: Element | None = device
            while card is not None and card.attribute("type") != "PCIDev":
                card = self.parents.get(id(card))
            # partitions of one card share the interface; a device around which there is no card is one
            if shown.setdefault(id(card or device), backend) == backend:
                count += 1
        if count:
            return count
        kinds = [(device.attribute("pci_type") or "")[:4] for device in self.of_type("PCIDev")]
        count = sum(kind in _PROCESSORS for kind in kinds)
        if count:
            text = f"{count} gpus, by their PCI class: no interface such as CUDA shows them"
            self.notes.assumed(text, self.where)
        elif _DISPLAY in kinds:
            self.notes.left_out("graphics cards that no interface for computing shows", self.where)
        return count
