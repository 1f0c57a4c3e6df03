"""Job Objects in a line, and what they map to: shared by the tests of `formats.sss`."""

from __future__ import annotations

import pytest

from simsched.errors import FormatError
from simsched.formats.sss.document import read_document
from simsched.formats.sss.expressions import Names  # noqa: TC001
from simsched.formats.sss.records import job_records


def job(inner: str, attrs: str = "") -> str:
    return f"<Job{attrs}><Id>1</Id>{inner}</Job>"


def mapped(text: str, cluster: Names | None = None):
    return job_records(read_document(text, "f.xml"), "f.xml", cluster=cluster)


def one(text: str, cluster: Names | None = None):
    (record,), warnings = mapped(text, cluster)
    assert warnings == ()
    return record


def fails(text: str, cluster: Names | None = None) -> str:
    with pytest.raises(FormatError) as caught:
        mapped(text, cluster)
    return str(caught.value)
