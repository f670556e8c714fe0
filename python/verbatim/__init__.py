"""Records a PyTorch training run step by step, bit for bit, into one file that can be audited.

    with verbatim.Recorder("run.db", model, optimizer, seed=1) as recorder:
        for batch in loader:
            loss = model(**batch).loss
            loss.backward()
            optimizer.step()
            recorder.step(loss=loss, batch=batch)
            optimizer.zero_grad()

`verbatim verify run.db` audits the record, `verbatim diff a.db b.db` finds where two runs part;
`verbatim.open`, `verbatim.verify` and `verbatim.diff` are the same from Python.
"""

from verbatim._native import version as _version
from verbatim.command import diff, executable, verify
from verbatim.errors import BadInputError, Error, FailedError, UsageError
from verbatim.recorder import Recorder
from verbatim.run import Access, Captured, Layer, Run, Step, open

__version__ = _version()

__all__ = [
    "Access",
    "BadInputError",
    "Captured",
    "Error",
    "FailedError",
    "Layer",
    "Recorder",
    "Run",
    "Step",
    "UsageError",
    "diff",
    "executable",
    "open",
    "verify",
]
