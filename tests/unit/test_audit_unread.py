"""Why rules on stored norms were not checked: the reason names what is the matter."""

from dataclasses import replace
from pathlib import Path

import pytest

from golden.inspections import llama
from normscope.audit.unread import why_unread, why_valueless
from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.weights.report import (
    ParameterProblem,
    StoredParameter,
    WeightsLevel,
    WeightsReport,
)

MISSING, SHAPE = ParameterProblem.MISSING, ParameterProblem.SHAPE


def report(*problems: ParameterProblem | None) -> WeightsReport:
    parameters = tuple(
        StoredParameter(
            name=f"norm{number}.weight",
            is_gain=True,
            stored_name=None,
            file=None,
            dtype=None,
            shape=None,
            problem=problem,
        )
        for number, problem in enumerate(problems)
    )
    return WeightsReport(
        level=WeightsLevel.NORMS,
        container="gguf",
        files=1,
        file_bytes=10,
        bytes_read=1,
        parameters=parameters,
    )


@pytest.mark.parametrize(
    ("problems", "reason"),
    [
        ((), None),
        ((SHAPE, SHAPE), "the norms' parameters are stored with other shapes than the model has"),
        ((MISSING, MISSING), "none of the norms' parameters is stored"),
        (
            (MISSING, SHAPE),
            "the norms' parameters are missing from the weights or have other shapes",
        ),
        ((None, None), "the values in gguf files cannot be read"),
        ((None, SHAPE), "the values in gguf files cannot be read"),
    ],
)
def test_why_there_are_no_values(
    problems: tuple[ParameterProblem | None, ...], reason: str | None
) -> None:
    assert why_valueless(report(*problems)) == reason


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ((), None),
        (
            ("pytorch_model.bin",),
            "the weights are pickled and were not opened: `--weights norms` reads them",
        ),
        (("pytorch_model.bin", "model.safetensors"), "the weights were not read"),
    ],
)
def test_why_weights_that_lie_here_were_not_read(
    tmp_path: Path, files: tuple[str, ...], reason: str | None
) -> None:
    for name in files:
        (tmp_path / name).write_bytes(b"")
    checkpoint = Checkpoint(target="here", kind=CheckpointKind.DIRECTORY, directory=tmp_path)
    assert why_unread(checkpoint, llama(2)) == reason
    assert why_unread(checkpoint, replace(llama(2), stored=report())) is None
    assert why_unread(replace(checkpoint, repository="a/b"), llama(2)) is None
