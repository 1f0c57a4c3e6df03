"""The SSS Job Object 3.1.0: XML in and out, and its jobs as jobspecs.

>>> from simsched.formats.sss import job_records, read_document
>>> document = read_document("<Job><Id>7</Id><Processors>16</Processors><Duration>60</Duration></Job>")
>>> jobs, warnings = job_records(document)
>>> jobs[0].id, jobs[0].jobspec.to_shape(), jobs[0].duration
('7', 'slot=16/core', 60)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simsched.formats.sss.document import (
        DeliveredValues,
        Document,
        check_document,
        read_document,
        with_results,
    )
    from simsched.formats.sss.expressions import Names
    from simsched.formats.sss.records import JobRecord, has_patterns, job_objects, job_records
    from simsched.formats.sss.writer import job_element
    from simsched.formats.text.xml_tree import Element, write_xml

__all__ = [
    "DeliveredValues",
    "Document",
    "Element",
    "JobRecord",
    "Names",
    "check_document",
    "has_patterns",
    "job_element",
    "job_objects",
    "job_records",
    "read_document",
    "with_results",
    "write_xml",
]

_HOMES = {
    "Document": "document",
    "Element": "simsched.formats.text.xml_tree",
    "JobRecord": "records",
    "Names": "expressions",
    "DeliveredValues": "document",
    "check_document": "document",
    "has_patterns": "records",
    "job_element": "writer",
    "job_objects": "records",
    "job_records": "records",
    "read_document": "document",
    "with_results": "document",
    "write_xml": "simsched.formats.text.xml_tree",
}


def __getattr__(name: str) -> object:
    """Import a name of this package on its first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = _HOMES[name]
    return getattr(import_module(home if "." in home else f"{__name__}.{home}"), name)
