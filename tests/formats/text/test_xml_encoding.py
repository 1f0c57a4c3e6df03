"""XML files in the encodings that XML may declare, wherever a file is read."""

import gzip
import io
import sys

import pytest

from simsched.cli import main
from simsched.errors import FormatError
from simsched.formats.text.documents import decode_xml, read_text
from simsched.graph.build.cluster_files import graph_from_bytes
from simsched.workload.load import load_workload

JOB = """<?xml version="1.0" encoding="{}"?>
<Job>
  <Id>1</Id>
  <Name>Järvi</Name>
  <Requested><Processors>4</Processors><Duration>60</Duration></Requested>
</Job>
"""
GRUG = """<?xml version='1.0' encoding='{}'?>
<graphml><key id="root" for="node" attr.name="root"/><key id="type" for="node" attr.name="type"/>
<key id="basename" for="node" attr.name="basename"/><graph edgedefault="directed">
<node id="n"><data key="root">1</data><data key="type">node</data><data key="basename">jõgi</data></node>
</graph></graphml>
"""
READ = ("UTF-8", "utf-8", "ISO-8859-1", "iso-8859-1", "UTF-16")


@pytest.fixture(params=READ)
def encoding(request):
    return request.param


@pytest.fixture
def job(encoding, tmp_path):
    """The file of one job in this encoding."""
    path = tmp_path / "job.xml"
    path.write_bytes(JOB.format(encoding).encode(encoding))
    return str(path)


def test_job_objects_are_converted(job, capsys):
    assert main(["convert", job, "--to", "jobspec"]) == 0
    assert 'name: "Järvi"' in capsys.readouterr().out
    assert main(["validate", job]) == 0
    assert main(["feasible", "tiny", job]) == 0


def test_job_objects_are_a_workload(job):
    (found,) = load_workload(job).jobs
    assert found.jobspec.to_shape() == "slot=4/core"


def test_job_objects_are_delivered_in_utf_8(job, tmp_path, capsys):
    assert main(["run", "tiny", job, "-o", str(tmp_path / "run"), "--quiet"]) == 0
    assert main(["workload", "deliver", job, str(tmp_path / "run"), "-o", str(tmp_path / "done.xml")]) == 0
    done = (tmp_path / "done.xml").read_bytes().decode("utf-8")
    assert done.startswith('<?xml version="1.0" encoding="UTF-8"?>')
    assert "<Name>Järvi</Name>" in done


def test_a_packed_file_is_decoded_as_well(tmp_path):
    (tmp_path / "job.xml.gz").write_bytes(gzip.compress(JOB.format("UTF-16").encode("utf-16")))
    assert "Järvi" in read_text(tmp_path / "job.xml.gz")
    assert len(load_workload(tmp_path / "job.xml.gz").jobs) == 1


def test_grug_is_xml_too(encoding):
    text = GRUG.format(encoding).replace("õ", "ä")
    graph = graph_from_bytes(text.encode(encoding))
    assert [pool["pool"].basename for _, pool in graph.nodes(data=True)] == ["jägi"]


def test_standard_input_is_decoded_as_well(encoding, monkeypatch, capsys):
    data = GRUG.format(encoding).replace("õ", "ä").encode(encoding)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["validate", "-"]) == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(JOB.format(encoding).encode(encoding))))
    assert main(["workload", "show", "-"]) == 0
    assert "4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (
            JOB.format("windows-1252").encode("cp1252"),
            "job.xml: the XML declares the encoding WINDOWS-1252 (expected UTF-8, US-ASCII, ISO-8859-1, ",
        ),
        (
            JOB.format("UTF-16").encode("latin-1"),
            "job.xml: the XML declares the encoding UTF-16 (expected UTF-8, ",
        ),
        (
            JOB.format("US-ASCII").encode("latin-1"),
            "job.xml:4: byte 0xe4 is not US-ASCII, which the XML declares (expected text)",
        ),
        (
            JOB.format("UTF-8").encode("latin-1"),
            "job.xml:4: byte 0xe4 is not UTF-8, which the XML declares (expected text)",
        ),
        (
            JOB.format("UTF-16").encode("utf-16")[:-1],
            "job.xml: byte 0x0a is not UTF-16, which the XML declares",
        ),
    ],
)
def test_what_is_not_as_declared_is_refused(data, fault):
    with pytest.raises(FormatError) as caught:
        decode_xml(data, "job.xml")
    assert str(caught.value).startswith(fault)


def test_an_encoding_in_the_text_is_no_declaration():
    assert decode_xml(b"<a>\n<?xml encoding='UTF-7'?></a>") is None
    assert decode_xml(b"resources: [\"<?xml version='1.0' encoding='UTF-7'?>\"]") is None


def test_a_document_type_is_still_refused(tmp_path, capsys):
    text = JOB.format("ISO-8859-1").replace("<Job>", "<!DOCTYPE Job [<!ENTITY e 'x'>]>\n<Job>")
    (tmp_path / "job.xml").write_bytes(text.encode("latin-1"))
    assert main(["convert", str(tmp_path / "job.xml"), "--to", "shape"]) == 2
    assert "job.xml:2:15: a DOCTYPE is not accepted" in capsys.readouterr().err
