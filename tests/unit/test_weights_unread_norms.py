"""Stored tensors that nothing reads -> those that are stored as a norm's are, by any name."""

from collections.abc import Mapping

import pytest

from normscope.weights.names import LoadedNames
from normscope.weights.stored import Container, StoredTensor
from normscope.weights.unread_norms import unread_norm_tensors

HIDDEN = (8,)
MODEL = {
    "layers.0.a.weight": HIDDEN,  # a norm
    "layers.0.b.weight": (8, 8),
    "layers.1.a.weight": HIDDEN,
    "layers.1.b.weight": (8, 8),
}
NORMS = ["layers.0.a.weight", "layers.1.a.weight"]


class Unchanged:
    """Names in the files are those of the module, or begin with `old.`."""

    def parameter(self, name: str) -> str:
        return name.removeprefix("old.")

    def added(self, tensor: StoredTensor) -> float | None:
        return 0.0


def unread(
    tensors: Mapping[str, tuple[int, ...]],
    *,
    dtype: str = "float32",
    container: Container = Container.SAFETENSORS,
    quantized: tuple[str, ...] = (),
) -> list[str]:
    """Return what is a norm's of the tensors that the model does not read."""
    stored = {
        name: StoredTensor(name=name, dtype=dtype, shape=shape, file="model.safetensors")
        for name, shape in {**MODEL, **tensors}.items()
    }
    names = LoadedNames(
        source={name: stored[name] for name in MODEL},
        tied={},
        shapes=MODEL,
        unexpected=tuple(name for name in tensors if name not in quantized),
        quantized=frozenset(quantized),
        renaming=Unchanged(),
    )
    return list(unread_norm_tensors(names, stored, NORMS, container))


@pytest.mark.parametrize(
    "tensors",
    [
        ["layers.7.a.weight"],  # at the place of a norm, in a layer that the config lacks
        ["layers.0.a.bias"],
        ["old.layers.7.a.weight"],
        ["layers.0.nobody.weight", "layers.0.nobody.bias"],
        ["top.x"],
    ],
)
def test_vectors_where_norms_stand_and_alone_in_a_module(tensors: list[str]) -> None:
    assert unread(dict.fromkeys(tensors, HIDDEN)) == tensors


@pytest.mark.parametrize(
    ("tensors", "why"),
    [
        ({"layers.0.norm.weight": (8, 8)}, "a matrix, whatever its name"),
        ({"layers.0.norm.weight": (8, 8), "layers.0.norm.bias": HIDDEN}, "a linear layer"),
        ({"layers.0.b.bias": HIDDEN}, "a bias of a layer that the model has"),
        ({"layers.0.norm": HIDDEN}, "a parameter of a module that holds more"),
        ({"norm": HIDDEN}, "a parameter of the model itself"),
        ({"x.scale": HIDDEN, "x.y.weight": (8, 8)}, "beside a module of its own"),
        ({"x.count": ()}, "a single number"),
        ({"x.table": (1, 8, 2)}, "no vector"),
    ],
)
def test_what_is_none(tensors: dict[str, tuple[int, ...]], why: str) -> None:
    assert unread(tensors) == [], why


def test_running_statistics_with_their_count() -> None:
    tensors = {"x.weight": HIDDEN, "x.mean": HIDDEN, "x.count": ()}
    assert unread(tensors) == list(tensors)


def test_vectors_of_whole_numbers_are_no_gains() -> None:
    assert unread({"x.ids": HIDDEN}, dtype="int64") == []


def test_scales_beside_packed_values() -> None:
    tensors = {"x.packed": (4, 4), "x.zero": HIDDEN}
    assert unread(tensors, quantized=("x.packed",)) == []


def test_a_format_that_gives_every_tensor_a_module_of_its_own() -> None:
    tensors = {"rope.weight": HIDDEN, "layers.7.a.weight": HIDDEN}
    assert unread(tensors, container=Container.GGUF) == ["layers.7.a.weight"]
