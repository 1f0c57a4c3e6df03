"""The SSS Job Object 3.1.0: XML in and out, and its jobs as jobspecs.

Begin with `document`, which reads and checks one, and `records`, which gives its jobs; `writer` is the way
back.

>>> from simsched.formats.sss.document import read_document
>>> from simsched.formats.sss.records import job_records
>>> document = read_document("<Job><Id>7</Id><Processors>16</Processors><Duration>60</Duration></Job>")
>>> jobs, warnings = job_records(document)
>>> jobs[0].id, jobs[0].jobspec.to_shape(), jobs[0].duration
('7', 'slot=16/core', 60)
"""
