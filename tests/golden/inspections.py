"""Hand-made inspections of the shapes that real models have; the views are looked at with these."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from normscope.graph import Assumption
from normscope.inspection import (
    FORMULAS,
    BlockReport,
    BranchKind,
    BranchReport,
    Evidence,
    Inspection,
    ModelFacts,
    NormReport,
    Placement,
    Role,
    Site,
    StackReport,
    Variant,
)

VERSIONS = {"normscope": "0.1.0", "torch": "2.13.0", "transformers": "5.24.0"}
IN, INSIDE, OUT, TRUNK = Site.BRANCH_INPUT, Site.INSIDE_BRANCH, Site.BRANCH_OUTPUT, Site.TRUNK


@dataclass(frozen=True, kw_only=True)
class Style:
    """What all norms of a made model have in common."""

    kind: str = "RMSNorm"
    size: int = 4096
    eps: float = 1e-6
    gain: str = "w"
    bias: bool = False


def norm(name: str, role: Role, style: Style, **changes: object) -> NormReport:
    """Make one norm call."""
    whole = NormReport(
        name=name,
        module=name,
        call=0,
        calls=1,
        role=role,
        block=None,
        kind=style.kind,
        axes=(-1,),
        shape=(style.size,),
        groups=None,
        eps=style.eps,
        eps_position="inside",
        gain=style.gain,
        bias=style.bias,
        weight=None if style.gain == "none" else f"{name}.weight",
        bias_name=f"{name}.bias" if style.bias else None,
        statistics_dtype="float32",
        gain_dtype=None if style.gain == "none" else "float32",
        readers=(),
        foldable=False,
        foldable_reason="not linear",
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One branch of a made block: `norms` are (site, name within the block, readers)."""

    kind: BranchKind
    placement: Placement
    norms: tuple[tuple[Site, str, tuple[str, ...]], ...] = ()
    formula: str = ""
    parallel: bool = False
    shared: bool = False
    reason: str | None = None


def _branch(path: str, part: Part) -> BranchReport:
    names = {
        site: tuple(f"{path}.{name}" for at, name, _ in part.norms if at is site) for site in Site
    }
    return BranchReport(
        kind=part.kind,
        placement=part.placement,
        sites=tuple(site for site in Site if names[site]),
        formula=part.formula or FORMULAS.get(part.placement, "?"),
        parallel=part.parallel,
        shared_norm=part.shared,
        add=path,
        norms=names,
        reason=part.reason,
    )


def block(
    path: str, stack: str | None, index: int | None, parts: Iterable[Part], calls: int = 1
) -> BlockReport:
    """Make a block from its parts."""
    branches = tuple(_branch(path, part) for part in parts)
    names = {branch.placement for branch in branches}
    return BlockReport(
        path=path,
        stack=stack,
        index=index,
        calls=calls,
        placement=names.pop() if len(names) == 1 else Placement.MIXED,
        branches=branches,
    )


def norms_of(
    path: str, parts: Iterable[Part], style: Style, sizes: dict[str, int] | None = None
) -> list[NormReport]:
    """Make the norm calls of a block."""
    found: dict[str, NormReport] = {}
    for part in parts:
        for site, name, readers in part.norms:
            full = f"{path}.{name}"
            foldable = site in {IN, INSIDE} and bool(readers)
            found[full] = norm(
                full,
                Role(site.value),
                style,
                block=path,
                shape=((sizes or {}).get(name, style.size),),
                readers=tuple(f"{path}.{reader}" for reader in readers),
                foldable=foldable,
                foldable_reason=None if foldable else site.value.replace("_", " "),
            )
    return list(found.values())


def stack(path: str, blocks: list[BlockReport], variants: Iterable[Iterable[int]]) -> StackReport:
    """Make a stack whose variants have these indices."""
    names = {b.placement for b in blocks}
    return StackReport(
        path=path,
        blocks=len(blocks),
        placement=names.pop() if len(names) == 1 else Placement.MIXED,
        variants=tuple(
            Variant(indices=tuple(v), placement=blocks[next(iter(v))].placement)
            for v in map(tuple, variants)
        ),
    )


def inspection(
    target: str,
    class_name: str,
    parameters: int,
    stacks: list[StackReport],
    blocks: list[BlockReport],
    norms: list[NormReport],
    **more: object,
) -> Inspection:
    """Assemble a made inspection."""
    names = {branch.placement for b in blocks for branch in b.branches}
    whole = Inspection(
        target=target,
        versions=VERSIONS,
        model=ModelFacts(
            class_name=class_name,
            model_type=target.partition(":")[2] or None,
            revision=None,
            parameters=parameters,
            dtype="float32",
        ),
        weights="none",
        placement=names.pop() if len(names) == 1 else Placement.MIXED,
        stacks=tuple(stacks),
        blocks=tuple(blocks),
        norms=tuple(norms),
    )
    return replace(whole, **more)  # type: ignore[arg-type]


QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
UP = ("mlp.gate_proj", "mlp.up_proj")
PRE, POST = Placement.PRE, Placement.POST


def llama(depth: int = 32) -> Inspection:
    """Pre-norm, all alike, with a name that misleads."""
    parts = (
        Part(kind=BranchKind.ATTENTION, placement=PRE, norms=((IN, "input_layernorm", QKV),)),
        Part(kind=BranchKind.MLP, placement=PRE, norms=((IN, "post_attention_layernorm", UP),)),
    )
    style = Style()
    paths = [f"layers.{n}" for n in range(depth)]
    blocks = [block(path, "layers", n, parts) for n, path in enumerate(paths)]
    norms = [found for path in paths for found in norms_of(path, parts, style)]
    norms.append(norm("norm", Role.FINAL, style))
    stacks = [stack("layers", blocks, [range(depth)])]
    return inspection("type:llama", "LlamaModel", 6607343616, stacks, blocks, norms)


def bert() -> Inspection:
    """Post-norm with biases, an embedding norm and evidence."""
    attention = ("intermediate.dense",)
    mlp = ("attention.self.query", "attention.self.key", "attention.self.value")
    parts = (
        Part(
            kind=BranchKind.ATTENTION,
            placement=POST,
            norms=((TRUNK, "attention.output.LayerNorm", attention),),
        ),
        Part(kind=BranchKind.MLP, placement=POST, norms=((TRUNK, "output.LayerNorm", mlp),)),
    )
    style = Style(kind="LayerNorm", size=768, eps=1e-12, bias=True)
    paths = [f"encoder.layer.{n}" for n in range(12)]
    blocks = [block(path, "encoder.layer", n, parts) for n, path in enumerate(paths)]
    blocks[0] = _with_evidence(blocks[0])
    norms = [norm("embeddings.LayerNorm", Role.EMBEDDING, style)]
    norms += [found for path in paths for found in norms_of(path, parts, style)]
    stacks = [stack("encoder.layer", blocks, [range(12)])]
    return inspection("type:bert", "BertModel", 109482240, stacks, blocks, norms)


def _with_evidence(made: BlockReport) -> BlockReport:
    attention, mlp = made.branches
    path = "encoder.layer.0.attention.output"
    steps = (
        ("stream", "embeddings.dropout", "dropout", "modeling_bert.py:108 BertEmbeddings.forward"),
        (
            "mix",
            "encoder.layer.0.attention.self.query",
            "addmm [16x768]",
            "modeling_bert.py:184 BertSelfAttention.forward",
        ),
        ("add", path, "add", "modeling_bert.py:292 BertSelfOutput.forward"),
        ("norm", f"{path}.LayerNorm", "LayerNorm(768)", ""),
    )
    evidence = tuple(
        Evidence(
            step=step,
            operation=operation if step == "mix" else f"{module}: {operation}",
            module=module,
            source=source,
        )
        for step, module, operation, source in steps
    )
    return replace(made, branches=(replace(attention, evidence=evidence), mlp))


def deepseek() -> Inspection:
    """61 blocks, the first three dense, the others mixtures of experts."""
    attention = Part(
        kind=BranchKind.ATTENTION,
        placement=PRE,
        norms=(
            (IN, "input_layernorm", ("self_attn.q_a_proj", "self_attn.kv_a_proj_with_mqa")),
            (INSIDE, "self_attn.q_a_layernorm", ("self_attn.q_b_proj",)),
            (INSIDE, "self_attn.kv_a_layernorm", ("self_attn.kv_b_proj",)),
        ),
    )
    dense = Part(kind=BranchKind.MLP, placement=PRE, norms=((IN, "post_attention_layernorm", UP),))
    sparse = Part(
        kind=BranchKind.MOE,
        placement=PRE,
        norms=(
            (IN, "post_attention_layernorm", ("mlp.gate", "mlp.experts", "mlp.shared_experts")),
        ),
    )
    style = Style(size=7168)
    sizes = {"self_attn.q_a_layernorm": 1536, "self_attn.kv_a_layernorm": 512}
    blocks, norms = [], []
    for n in range(61):
        parts = (attention, dense if n < 3 else sparse)
        blocks.append(block(f"layers.{n}", "layers", n, parts))
        norms += norms_of(f"layers.{n}", parts, style, sizes)
    norms.append(norm("norm", Role.FINAL, style))
    stacks = [stack("layers", blocks, [range(3), range(3, 61)])]
    assumed = Assumption(question="nonzero", where="layers.3.mlp.experts", answer="every element")
    return inspection(
        "type:deepseek_v3",
        "DeepseekV3Model",
        670531153920,
        stacks,
        blocks,
        norms,
        assumptions=(assumed,),
        warnings=("the quantization of the checkpoint is not applied",),
    )


def t5() -> Inspection:
    """Two stacks; the decoder's blocks have a third branch."""
    style = Style(size=512)

    def part(kind: BranchKind, layer: str, reader: str) -> Part:
        return Part(
            kind=kind,
            placement=PRE,
            norms=((IN, f"layer.{layer}.layer_norm", (f"layer.{layer}.{reader}",)),),
        )

    encoder = (
        part(BranchKind.ATTENTION, "0", "SelfAttention.q"),
        part(BranchKind.MLP, "1", "DenseReluDense.wi"),
    )
    decoder = (
        part(BranchKind.ATTENTION, "0", "SelfAttention.q"),
        part(BranchKind.CROSS_ATTENTION, "1", "EncDecAttention.q"),
        part(BranchKind.MLP, "2", "DenseReluDense.wi"),
    )
    blocks, norms, stacks = [], [], []
    for side, parts in (("encoder", encoder), ("decoder", decoder)):
        own = [block(f"{side}.block.{n}", f"{side}.block", n, parts) for n in range(6)]
        stacks.append(stack(f"{side}.block", own, [range(6)]))
        blocks += own
        for n in range(6):
            norms += norms_of(f"{side}.block.{n}", parts, style)
        norms.append(norm(f"{side}.final_layer_norm", Role.FINAL, style))
    return inspection("type:t5", "T5Model", 60506624, stacks, blocks, norms)


def swin() -> Inspection:
    """A nested list of blocks, with another width in each stage and norms between the stages."""
    parts = (
        Part(
            kind=BranchKind.ATTENTION,
            placement=PRE,
            norms=((IN, "layernorm_before", ("attention.self.query", "attention.self.key")),),
        ),
        Part(
            kind=BranchKind.MLP,
            placement=PRE,
            norms=((IN, "layernorm_after", ("intermediate.dense",)),),
        ),
    )
    style = Style(kind="LayerNorm", size=96, eps=1e-5, bias=True)
    blocks = []
    norms = [norm("embeddings.norm", Role.EMBEDDING, style)]
    for stage, depth in enumerate((2, 2, 6, 2)):
        wide = replace(style, size=96 * 2**stage)
        for n in range(depth):
            path = f"encoder.layers.{stage}.blocks.{n}"
            blocks.append(block(path, "encoder.layers.*.blocks", len(blocks), parts))
            norms += norms_of(path, parts, wide)
        if stage < 3:
            merging = replace(style, size=384 * 2**stage)
            norms.append(
                norm(f"encoder.layers.{stage}.downsample.norm", Role.BETWEEN_STACKS, merging)
            )
    norms.append(norm("layernorm", Role.FINAL, replace(style, size=768)))
    stacks = [stack("encoder.layers.*.blocks", blocks, [range(12)])]
    return inspection("type:swin", "SwinModel", 27519354, stacks, blocks, norms)


def opt_without_final_norm() -> Inspection:
    """Pre-norm without a final norm, with a "final" norm in every block, one of another eps."""
    parts = (
        Part(
            kind=BranchKind.ATTENTION,
            placement=PRE,
            norms=((IN, "self_attn_layer_norm", QKV),),
        ),
        Part(kind=BranchKind.MLP, placement=PRE, norms=((IN, "final_layer_norm", ("fc1",)),)),
    )
    style = Style(kind="LayerNorm", size=768, eps=1e-5, bias=True)
    paths = [f"decoder.layers.{n}" for n in range(12)]
    blocks = [block(path, "decoder.layers", n, parts) for n, path in enumerate(paths)]
    norms = [
        found
        for n, path in enumerate(paths)
        for found in norms_of(path, parts, replace(style, eps=1e-6) if n == 7 else style)
    ]
    stacks = [replace(stack("decoder.layers", blocks, [range(12)]), ended_by=())]
    return inspection("./opt-125m", "OPTModel", 125239296, stacks, blocks, norms)


def conformer() -> Inspection:
    """Four branches a block, the last of them both pre- and post-norm."""
    half = "x + 0.5·f(N(x))"
    parts = (
        Part(
            kind=BranchKind.MLP,
            placement=PRE,
            formula=half,
            norms=((IN, "ffn1_layer_norm", ("ffn1.intermediate_dense",)),),
        ),
        Part(
            kind=BranchKind.ATTENTION,
            placement=PRE,
            norms=((IN, "self_attn_layer_norm", ("self_attn.linear_q", "self_attn.linear_k")),),
        ),
        Part(
            kind=BranchKind.CONV,
            placement=PRE,
            norms=(
                (IN, "conv_module.layer_norm", ("conv_module.pointwise_conv1",)),
                (INSIDE, "conv_module.batch_norm", ()),
            ),
        ),
        Part(
            kind=BranchKind.MLP,
            placement=Placement.PRE_POST,
            formula="N(x + 0.5·f(N(x)))",
            norms=(
                (IN, "ffn2_layer_norm", ("ffn2.intermediate_dense",)),
                (TRUNK, "final_layer_norm", ()),
            ),
        ),
    )
    style = Style(kind="LayerNorm", size=1024, eps=1e-5, bias=True)
    batch = {"kind": "BatchNorm", "axes": (0, 2)}
    paths = [f"encoder.layers.{n}" for n in range(24)]
    blocks = [block(path, "encoder.layers", n, parts) for n, path in enumerate(paths)]
    norms = [norm("feature_projection.layer_norm", Role.STACK_INPUT, replace(style, size=160))]
    for path in paths:
        norms += [
            replace(found, **batch) if found.name.endswith("batch_norm") else found  # type: ignore[arg-type]
            for found in norms_of(path, parts, style)
        ]
    norms.append(norm("encoder.layer_norm", Role.FINAL, style))
    stacks = [stack("encoder.layers", blocks, [range(24)])]
    return inspection(
        "type:wav2vec2-conformer", "Wav2Vec2ConformerModel", 593000000, stacks, blocks, norms
    )


def gemma2() -> Inspection:
    """Sandwich norms with gains of the form 1+w."""
    parts = (
        Part(
            kind=BranchKind.ATTENTION,
            placement=Placement.SANDWICH,
            norms=((IN, "input_layernorm", QKV), (OUT, "post_attention_layernorm", ())),
        ),
        Part(
            kind=BranchKind.MLP,
            placement=Placement.SANDWICH,
            norms=((IN, "pre_feedforward_layernorm", UP), (OUT, "post_feedforward_layernorm", ())),
        ),
    )
    style = Style(size=2304, gain="1+w")
    paths = [f"layers.{n}" for n in range(26)]
    blocks = [block(path, "layers", n, parts) for n, path in enumerate(paths)]
    norms = [found for path in paths for found in norms_of(path, parts, style)]
    norms.append(norm("norm", Role.FINAL, style))
    stacks = [stack("layers", blocks, [range(26)])]
    return inspection("type:gemma2", "Gemma2Model", 2614341888, stacks, blocks, norms)


def falcon() -> Inspection:
    """Two parallel branches behind one norm."""
    shared = (IN, "input_layernorm", ("self_attention.query_key_value", "mlp.dense_h_to_4h"))
    parts = tuple(
        Part(kind=kind, placement=PRE, norms=(shared,), parallel=True, shared=True)
        for kind in (BranchKind.ATTENTION, BranchKind.MLP)
    )
    style = Style(kind="LayerNorm", size=4544, eps=1e-5, bias=True)
    paths = [f"h.{n}" for n in range(32)]
    blocks = [block(path, "h", n, parts) for n, path in enumerate(paths)]
    norms = [found for path in paths for found in norms_of(path, parts, style)]
    norms.append(norm("ln_f", Role.FINAL, style))
    stacks = [stack("h", blocks, [range(32)])]
    return inspection("type:falcon", "FalconModel", 6921720704, stacks, blocks, norms)


def albert() -> Inspection:
    """One block that runs twelve times, and a norm that was built and never ran."""
    parts = (
        Part(
            kind=BranchKind.ATTENTION,
            placement=POST,
            norms=((TRUNK, "attention.LayerNorm", ("ffn",)),),
        ),
        Part(
            kind=BranchKind.MLP,
            placement=POST,
            norms=((TRUNK, "full_layer_layer_norm", ("attention.query",)),),
        ),
    )
    style = Style(kind="LayerNorm", size=4096, eps=1e-12, bias=True)
    path = "encoder.albert_layer_groups.0.albert_layers.0"
    own = "encoder.albert_layer_groups.0.albert_layers"
    blocks = [block(path, own, 0, parts, calls=12)]
    norms = [norm("embeddings.LayerNorm", Role.EMBEDDING, replace(style, size=128))]
    norms += [
        replace(found, call=call, calls=12)
        for call in range(12)
        for found in norms_of(path, parts, style)
    ]
    norms.append(norm("unused.LayerNorm", Role.UNPLACED, style, calls=0))
    stacks = [stack(own, blocks, [[0]])]
    return inspection("type:albert", "AlbertModel", 222595584, stacks, blocks, norms)


def convnext() -> Inspection:
    """Norms inside the branches only, two formulas of one name, and a norm of another kind."""
    scaled = Part(
        kind=BranchKind.CONV,
        placement=Placement.NO_NORM,
        formula="x + γ·f(x)",
        norms=((INSIDE, "layernorm", ("pwconv1",)),),
    )
    style = Style(kind="LayerNorm", size=96, eps=1e-6, bias=True)
    norms = [norm("embeddings.layernorm", Role.EMBEDDING, style, axes=(1,))]
    blocks = []
    for stage, depth in enumerate((3, 3)):
        for n in range(depth):
            part = scaled if n else replace(scaled, formula="P(x) + γ·f(x)")
            path = f"stages.{stage}.layers.{n}"
            blocks.append(block(path, "stages.*.layers", len(blocks), (part,)))
            norms += norms_of(path, (part,), replace(style, size=96 * (stage + 1)))
        norms.append(norm(f"stages.{stage}.down.0", Role.BETWEEN_STACKS, style))
    norms.append(norm(":L2Norm", Role.HEAD, Style(kind="L2Norm", gain="none"), module=None))
    stacks = [stack("stages.*.layers", blocks, [(0, 3), (1, 2, 4, 5)])]
    return inspection("type:convnext", "ConvNextModel", 27818592, stacks, blocks, norms)


def hostile() -> Inspection:
    """Names that try to steer the terminal, and a branch that could not be decided."""
    name = "\x1b[31mevil\x1b[0m[bold]"
    part = Part(
        kind=BranchKind.OTHER,
        placement=Placement.UNKNOWN,
        formula="?",
        norms=((INSIDE, name, ()),),
        reason="the skip \x1b[2J passes a matmul",
    )
    style = Style(eps=float("nan"))
    blocks = [block(f"{name}.0", name, 0, (part,))]
    norms = norms_of(f"{name}.0", (part,), style)
    stacks = [stack(name, blocks, [[0]])]
    return inspection(f"./{name}\u202e", f"{name}Model", 12, stacks, blocks, norms)


EVERY = {
    made.target.partition(":")[2] or "opt": made
    for made in (
        llama(),
        bert(),
        deepseek(),
        t5(),
        swin(),
        opt_without_final_norm(),
        conformer(),
        gemma2(),
        falcon(),
        albert(),
        convnext(),
    )
}


# Drawn only: what the families above have no block of.


def olmo2() -> Inspection:
    """Norms at the end of each branch, and two inside the attention."""
    parts = (
        Part(
            kind=BranchKind.ATTENTION,
            placement=Placement.RES_POST,
            norms=(
                (INSIDE, "self_attn.q_norm", ()),
                (INSIDE, "self_attn.k_norm", ()),
                (OUT, "post_attention_layernorm", ()),
            ),
        ),
        Part(
            kind=BranchKind.MLP,
            placement=Placement.RES_POST,
            norms=((OUT, "post_feedforward_layernorm", ()),),
        ),
    )
    return _of_one_part("type:olmo2", "Olmo2Model", "layers", [parts] * 32, Style())


def gptj() -> Inspection:
    """Two parallel branches behind one norm."""
    shared = (IN, "ln_1", ("attn.q_proj", "mlp.fc_in"))
    parts = tuple(
        Part(kind=kind, placement=PRE, norms=(shared,), parallel=True, shared=True)
        for kind in (BranchKind.ATTENTION, BranchKind.MLP)
    )
    return _of_one_part("type:gptj", "GPTJModel", "h", [parts] * 28, Style(kind="LayerNorm"))


def gpt_neox() -> Inspection:
    """Two parallel branches, each behind its own norm."""
    parts = tuple(
        Part(kind=kind, placement=PRE, norms=((IN, name, ()),), parallel=True)
        for kind, name in (
            (BranchKind.ATTENTION, "input_layernorm"),
            (BranchKind.MLP, "post_attention_layernorm"),
        )
    )
    return _of_one_part(
        "type:gpt_neox", "GPTNeoXModel", "layers", [parts] * 44, Style(kind="LayerNorm")
    )


def resnet() -> Inspection:
    """Norms in and at the end of each branch; the first skip is projected and normalized."""
    plain = Part(
        kind=BranchKind.CONV,
        placement=Placement.RES_POST,
        norms=(
            (INSIDE, "layer.0.normalization", ()),
            (INSIDE, "layer.1.normalization", ()),
            (OUT, "layer.2.normalization", ()),
        ),
    )
    first = replace(plain, formula="N(P(x)) + N(f(x))")
    style = Style(kind="BatchNorm", bias=True)
    blocks = [(first,), (plain,), (plain,), (first,), (plain,)]
    return _of_one_part("type:resnet", "ResNetModel", "encoder.stages.*.layers", blocks, style)


def odd() -> Inspection:
    """Blocks that a drawing must not make plainer than they are."""
    style = Style(kind="LayerNorm")
    blocks = [
        (Part(kind=BranchKind.OTHER, placement=Placement.UNKNOWN, formula="?", reason="opaque"),),
        (
            Part(
                kind=BranchKind.ATTENTION,
                placement=Placement.OTHER,
                formula="x + f(N(x), x)",
                norms=((IN, "norm", ()),),
                reason="only some of the branch's inputs are normalized",
            ),
            Part(kind=BranchKind.MLP, placement=Placement.OTHER, formula="1.5·x - σ(N(f(x)))"),
        ),
        (
            Part(
                kind=BranchKind.MLP,
                placement=Placement.OTHER,
                formula="N(g·x + γ·N(2.5·f(N(x))))",
                norms=((IN, "a", ()), (OUT, "b", ()), (OUT, "c", ()), (TRUNK, "d", ())),
            ),
        ),
        (
            Part(
                kind=BranchKind.CONV,
                placement=Placement.OTHER,
                formula="f(N(x))",
                norms=((IN, "norm", ()),),
            ),
            *(
                Part(kind=kind, placement=PRE, norms=((IN, "n", ()),), parallel=True, shared=True)
                for kind in (BranchKind.ATTENTION, BranchKind.MLP, BranchKind.SSM)
            ),
        ),
    ]
    made = _of_one_part("./odd", "OddModel", "blocks", blocks, style)
    skipless = made.blocks[3]
    without = replace(skipless.branches[0], add=None)
    last = replace(skipless, branches=(without, *skipless.branches[1:]), calls=3)
    return replace(made, blocks=(*made.blocks[:3], last))


def two_towers() -> Inspection:
    """Two stacks of equal blocks, one of them with an odd block."""
    made = _of_one_part("./towers", "Towers", "text.layers", [(_MLP,)] * 3, Style())
    other = _of_one_part("", "", "vision.layers", [(_MLP,)] * 2 + [(_HALF,)], Style())
    return replace(
        made,
        stacks=made.stacks + other.stacks,
        blocks=made.blocks + other.blocks,
        norms=made.norms + other.norms,
    )


_MLP = Part(kind=BranchKind.MLP, placement=PRE, norms=((IN, "norm", ()),))
_HALF = replace(_MLP, formula="x + 0.5·f(N(x))")


def _of_one_part(
    target: str, class_name: str, path: str, parts: list[tuple[Part, ...]], style: Style
) -> Inspection:
    paths = [f"{path.replace('*', '0')}.{n}" for n in range(len(parts))]
    blocks = [block(p, path, n, parts[n]) for n, p in enumerate(paths)]
    norms = [found for n, p in enumerate(paths) for found in norms_of(p, parts[n], style)]
    stacks = [stack(path, blocks, [range(len(blocks))])]
    return inspection(target, class_name, 1_000_000, stacks, blocks, norms)


DRAWN = {
    **{
        name: EVERY[name]
        for name in (
            "llama",
            "bert",
            "gemma2",
            "t5",
            "deepseek_v3",
            "falcon",
            "wav2vec2-conformer",
            "convnext",
        )
    },
    "olmo2": olmo2(),
    "gptj": gptj(),
    "gpt_neox": gpt_neox(),
    "resnet": resnet(),
    "odd": odd(),
    "towers": two_towers(),
    "hostile": hostile(),
}
