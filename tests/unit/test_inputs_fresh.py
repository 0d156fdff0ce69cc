"""What a run writes into an object that it is given stays in that run."""

import torch

from normscope.inputs import ExampleInputs


class Session:
    def __init__(self) -> None:
        self.memory: list[torch.Tensor] = []


def test_objects_are_copied_and_tensors_are_not() -> None:
    x, session = torch.ones(2), Session()
    inputs = ExampleInputs(keywords={"x": x, "session": session}, positional=(session, 3))
    fresh = inputs.fresh()
    fresh.keywords["session"].memory.append(x)
    fresh.positional[0].memory.append(x)
    assert session.memory == []
    assert fresh.keywords["x"] is x
    assert fresh.positional[1] == 3


def test_what_cannot_be_copied_is_given_again() -> None:
    history = [torch.ones(2, requires_grad=True) * 2]
    assert ExampleInputs(positional=(history,)).fresh().positional[0] is history
