"""Inspection: all that is known of one checkpoint, assembled."""

from collections.abc import Mapping
from dataclasses import dataclass

from normscope.errors import FailureKind
from normscope.graph import Assumption
from normscope.placement.vocabulary import FORMULAS, Placement, Role, Site
from normscope.residuals.kinds import BranchKind
from normscope.weights.report import AdapterReport, WeightsReport

__all__ = [
    "FORMULAS",
    "Answer",
    "BlockReport",
    "BranchKind",
    "BranchReport",
    "Consequence",
    "EpsSetting",
    "Evidence",
    "Inspection",
    "ModelFacts",
    "NormCheck",
    "NormReport",
    "NotChecked",
    "Placement",
    "Role",
    "Site",
    "StackReport",
    "Uninspectable",
    "Variant",
    "Verification",
    "VerifiedBranch",
    "VerifiedNorm",
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
    cast: str | None = None
    """Where a half-precision run casts back to its own dtype: `before gain` (Llama), `after gain`
    (Gemma), `no cast` where the statistics run in half precision too; None where not known."""
    squares_in_half: bool | None = None
    """Whether a half-precision run squares its values in half precision; None where not known."""


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
    ended_by: tuple[str, ...] | None = None
    """The norms that read the stream behind its last block, in order of execution; None where the
    stream goes on in other blocks, or where that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsSetting:
    """A number of the config whose key has the word eps, or a part of the config without one."""

    key: str
    """With the parts that it lies in: `vision_config.layer_norm_eps`."""
    value: float | None
    """None for a part that says nothing of eps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What was built."""

    class_name: str
    model_type: str | None
    revision: str | None
    parameters: int
    dtype: str
    eps_settings: tuple[EpsSetting, ...] = ()
    """What the config says of eps, used by norms or not; empty for a model without a config."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consequence:
    """What one intervention in a running copy must do by the report, and what it did."""

    intervention: str
    """`3x for x`: x, the stream value that enters the branch, is made three times as large.

    `x + c for x` shifts it; `3y for its y` makes what the branch computes behind its last product
    three times as large; `0 for the branch` adds nothing.
    """
    predicted: str
    observed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedBranch:
    """One reported branch beside what interventions in a running copy show of it."""

    block: str
    branch: int
    """Position of the branch in the block's report."""
    kind: BranchKind
    reported: Placement
    observed: Placement
    sites: tuple[Site, ...]
    """The sites at which the numbers show a norm."""
    agrees: bool
    seen_in: str
    """The block of the copy that was observed: `block` itself, or one like it."""
    consequences: tuple[Consequence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NormCheck:
    """One fact of one norm, as reported and as recovered from its outputs."""

    fact: str
    """`kind`, `axes`, `groups`, `gain`, `bias`, `eps` or `eps_position`."""
    reported: str
    observed: str
    agrees: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedNorm:
    """One norm beside what a probe from outside recovers."""

    name: str
    module: str | None
    """None for a norm that its parent writes out, which is probed where it stands in the copy."""
    checks: tuple[NormCheck, ...]

    @property
    def agrees(self) -> bool:
        """Whether every fact does."""
        return all(check.agrees for check in self.checks)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotChecked:
    """A verdict that the numbers say nothing about, and why."""

    what: str
    """`layers.0, branch 1 (mlp)`, or the name of a norm."""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The verdicts of one inspection that were checked by numbers, and those that were not."""

    copy: str
    """What was run: `3 of 32 blocks, widths over 16, 0.4M parameters`; `none` where nothing was."""
    branches: tuple[VerifiedBranch, ...]
    norms: tuple[VerifiedNorm, ...]
    branches_not_checked: tuple[NotChecked, ...]
    norms_not_checked: tuple[NotChecked, ...]

    @property
    def agrees(self) -> bool:
        """Whether nothing that was checked disagrees."""
        return all(branch.agrees for branch in self.branches) and all(
            norm.agrees for norm in self.norms
        )


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
    stored: WeightsReport | None = None
    """The norms' parameters in the checkpoint's files; None where `weights` is `none`."""
    adapter: AdapterReport | None = None
    """Where the target is an adapter: what it trains of the base model's norms."""
    verification: Verification | None = None
    """Of the verdicts above, by their numbers; None where that was not asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uninspectable:
    """A target that has no inspection, and why."""

    target: str
    kind: FailureKind
    message: str
    hint: str = ""


Answer = Inspection | Uninspectable
