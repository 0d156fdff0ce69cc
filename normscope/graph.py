"""An immutable dataflow graph of one forward pass; knows no torch."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from normscope.operations import NORMALIZE, mixes

Scalar = bool | int | float | str | None
Argument = Scalar | tuple[Scalar, ...]


class Origin(StrEnum):
    """Where a value comes from."""

    INPUT = "input"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"
    OPERATION = "operation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The line of a forward() that ran an operation."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One tensor value and the operation that made it."""

    index: int
    """Position in the order of execution; operands always have smaller indices."""
    operation: str
    """ATen name without overload and in-place underscore (`add`, `native_layer_norm`)."""
    operands: tuple[int, ...] = ()
    """The tensors it reads, in the order of the operation's schema."""
    shape: tuple[int, ...] = ()
    dtype: str = "float32"
    origin: Origin = Origin.OPERATION
    module: str = ""
    """Path of the innermost module whose forward ran it; "" is the root."""
    call: int = 0
    """Index into `Graph.calls` of the module call that ran it."""
    ordinal: int = 0
    """How many operations that module call had run itself before this one."""
    output: int = 0
    """Which output of the operation this value is."""
    arguments: Mapping[str, Argument] | None = None
    """The arguments that are no tensors, by the schema's names."""
    slots: tuple[str, ...] = ()
    """The schema's name of each operand (`input`, `weight`, …), as long as `operands`."""
    name: str = ""
    """Name of a parameter, a buffer or an input."""
    source: Source | None = None

    def argument(self, name: str, default: Argument = None) -> Argument:
        """Return one non-tensor argument, or `default` where it was left out."""
        return default if self.arguments is None else self.arguments.get(name, default)

    def operand(self, slot: str) -> int | None:
        """Return the index of the operand that the schema calls `slot`, if it was passed."""
        for name, index in zip(self.slots, self.operands, strict=False):
            if name == slot:
                return index
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One module of the tree that was built, whether it ran or not."""

    path: str
    class_name: str
    is_list: bool = False
    """A ModuleList or Sequential: a container that numbers its children."""
    children: tuple[str, ...] = ()
    """Paths of its direct children, in order."""
    parameters: tuple[str, ...] = ()
    """Full names of the parameters that it holds itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleCall:
    """One run of one module's forward."""

    path: str
    number: int
    """0 for the module's first run, 1 for its second, …"""
    parent: int | None
    """Index into `Graph.calls` of the call that it ran inside of."""
    inputs: tuple[int, ...]
    """The tensors that went in, positional ones first."""
    outputs: tuple[int, ...]
    """The tensors that came out, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A question that the code asked of a value that was not computed, and the answer it got."""

    question: str
    where: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class Graph:
    """What one forward pass did: values in order of execution, and the modules around them."""

    nodes: tuple[Node, ...]
    modules: Mapping[str, Module]
    calls: tuple[ModuleCall, ...] = ()
    outputs: tuple[int, ...] = ()
    """The values that the root module returned."""
    assumptions: tuple[Assumption, ...] = ()
    unrun: Mapping[str, "Graph"] = field(default_factory=dict)
    """What modules that could be norms and did not run do by themselves, by path."""
    halved: Mapping[str, "Graph"] = field(default_factory=dict)
    """What one module of each class that could be a norm does on bfloat16 input, by class name."""

    @cached_property
    def consumers(self) -> Sequence[tuple[int, ...]]:
        """For each node, the nodes that read it, in order of execution."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for operand in dict.fromkeys(node.operands):
                found[operand].append(node.index)
        return tuple(tuple(readers) for readers in found)

    @cached_property
    def depends_on_input(self) -> Sequence[bool]:
        """For each node, whether it is an activation: a value that an input reaches."""
        known: list[bool] = []
        for node in self.nodes:
            known.append(
                node.origin is Origin.INPUT or any(known[operand] for operand in node.operands)
            )
        return tuple(known)

    @cached_property
    def depends_on_weight(self) -> Sequence[bool]:
        """For each node, whether a parameter reaches it."""
        known: list[bool] = []
        for node in self.nodes:
            known.append(
                node.origin is Origin.PARAMETER or any(known[operand] for operand in node.operands)
            )
        return tuple(known)

    @cached_property
    def computes(self) -> Sequence[bool]:
        """For each node, whether a product, a reduction or the like lies behind it."""
        known: list[bool] = []
        for node in self.nodes:
            known.append(
                mixes(node.operation)
                or node.operation == NORMALIZE
                or any(known[operand] for operand in node.operands)
            )
        return tuple(known)

    @cached_property
    def paths(self) -> dict[tuple[int, int], frozenset[int]]:
        """The nodes between two nodes, where they were looked for: kept by who found them."""
        return {}

    @cached_property
    def repeating_lists(self) -> frozenset[str]:
        """Module lists that repeat one class: all of their elements, or at least half and two."""
        return frozenset(
            path
            for path, module in self.modules.items()
            if module.is_list and self._repeats_one_class(module)
        )

    def _repeats_one_class(self, module: Module) -> bool:
        counts = Counter(self.modules[child].class_name for child in module.children)
        most = max(counts.values(), default=0)
        return len(counts) == 1 or (most >= 2 and most * 2 >= len(module.children))

    @cached_property
    def call_counts(self) -> Mapping[str, int]:
        """How often each module ran; a module that never ran is absent."""
        counts: dict[str, int] = {}
        for call in self.calls:
            counts[call.path] = counts.get(call.path, 0) + 1
        return counts
