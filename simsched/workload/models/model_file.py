"""Model files, from which a workload is drawn: a mix (``parts``) or the model of a log (``classes``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simsched.workload.models.log_model_document import model_from_dict
from simsched.workload.models.mix import mix_from_dict

if TYPE_CHECKING:
    from simsched.workload.job import Workload
    from simsched.workload.mapping import ReadOptions
    from simsched.workload.models.log_model import LogModel
    from simsched.workload.models.mix import Mix


def is_model_document(document: Any) -> bool:
    """Whether a document is a mix or a log's model."""
    return isinstance(document, dict) and any(
        isinstance(document.get(key), list) for key in ("parts", "classes")
    )


def model_of(document: Any, where: str = "mix") -> Mix | LogModel:
    """Return the mix or the log's model of a document.

    Raises
    ------
    ConfigError
        With the place, when a key is unknown or a value is invalid.
    """
    if isinstance(document, dict) and "classes" in document:
        return model_from_dict(document, where)
    return mix_from_dict(document, where)


def read_model(text: str, reading: ReadOptions) -> Workload:
    """Draw the jobs of a model file with the seed of the reading."""
    from dataclasses import replace

    import numpy as np

    from simsched.formats.text.documents import load_document

    model = model_of(load_document(text, reading.source), reading.source)
    workload = model.make(np.random.default_rng(reading.seed))
    jobs = workload.jobs if reading.limit is None else workload.jobs[: reading.limit]
    return replace(workload, jobs=jobs, source=reading.source, total_records=len(jobs))
