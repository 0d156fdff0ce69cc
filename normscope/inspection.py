"""Inspection: all that is known of one checkpoint, assembled."""

from collections.abc import Mapping
from dataclasses import dataclass

from normscope.errors import FailureKind
from normscope.graph import Assumption
from normscope.placement.vocabulary import FORMULAS, Placement, Role, Site
from normscope.residuals.kinds import BranchKind

__all__ = [
    "FORMULAS",
    "Answer",
    "BlockReport",
    "BranchKind",
    "BranchReport",
    "Evidence",
    "Inspection",
    "ModelFacts",
    "NormReport",
    "Placement",
    "Role",
    "Site",
    "StackReport",
    "Uninspectable",
    "Variant",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NormReport:
    """One norm call as reported; a norm that was built and never ran has `calls` 0."""

    name: str
    module: str | None
    call: int
    calls: int
    role: Role
    block: str | None
    kind: str
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    groups: int | None
    eps: float | None
    eps_position: str
    gain: str
    bias: bool
    weight: str | None
    bias_name: str | None
    statistics_dtype: str | None
    gain_dtype: str | None
    readers: tuple[str, ...]
    """Paths of the modules that read its output, in order of execution."""
    foldable: bool
    foldable_reason: str | None
    """Why the gain cannot be folded into the readers, or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One step of the chain that proves a verdict."""

    step: str
    """`stream`, `norm`, `mix`, `add`, …"""
    operation: str
    """The operation as it ran: `layers.0.input_layernorm: RMSNorm(4096)`."""
    module: str
    source: str
    """`modeling_llama.py:308 LlamaDecoderLayer.forward`, or "" where not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchReport:
    """One residual branch of a block."""

    kind: BranchKind
    placement: Placement
    sites: tuple[Site, ...]
    formula: str
    parallel: bool
    shared_norm: bool
    add: str | None
    """Path of the module whose forward does the residual add; None without an add."""
    norms: Mapping[Site, tuple[str, ...]]
    """Names of the norms at each site, in order of execution."""
    reason: str | None = None
    """Why the placement is `unknown` or `other`."""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockReport:
    """One block: the branches between one stream value and the next."""

    path: str
    stack: str | None
    index: int | None
    calls: int
    placement: Placement
    branches: tuple[BranchReport, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """The blocks of a stack with equal facts."""

    indices: tuple[int, ...]
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class StackReport:
    """A repeated list of blocks; `*` in the path stands for the stages of a nested list."""

    path: str
    blocks: int
    placement: Placement
    variants: tuple[Variant, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What was built."""

    class_name: str
    model_type: str | None
    revision: str | None
    parameters: int
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The answer of `normscope inspect` for one target."""

    target: str
    versions: Mapping[str, str]
    """Of normscope, torch and transformers."""
    model: ModelFacts
    weights: str
    """What was read of the weights: `none`, `headers` or `norms`."""
    placement: Placement
    """The name that all branches of all stacks share, else `mixed`."""
    stacks: tuple[StackReport, ...]
    blocks: tuple[BlockReport, ...]
    norms: tuple[NormReport, ...]
    towers: tuple[str, ...] = ()
    """Sub-models that were traced alone because the whole forward could not run."""
    assumptions: tuple[Assumption, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Uninspectable:
    """A target that has no inspection, and why."""

    target: str
    kind: FailureKind
    message: str
    hint: str = ""


Answer = Inspection | Uninspectable
