"""JSON text of documents, for files that people may read."""

from __future__ import annotations

from typing import Any


def encode_json(document: Any, *, indent: int = 2) -> bytes:
    r"""Return a document as indented JSON that ends with a newline.

    >>> encode_json({"a": [1]}, indent=0)
    b'{"a":[1]}\n'
    """
    import msgspec

    text = msgspec.json.encode(document)
    return (msgspec.json.format(text, indent=indent) if indent else text) + b"\n"


def is_unicode(document: Any) -> bool:
    r"""Say whether all texts of a JSON value can be written: escapes can make half a surrogate pair.

    >>> is_unicode({"a": ["\u00e9"]}), is_unicode({"a": ["\ud800"]})
    (True, False)
    """
    import msgspec

    try:
        msgspec.json.encode(document)
    except UnicodeEncodeError:
        return False
    return True
