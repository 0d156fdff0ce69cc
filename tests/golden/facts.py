"""Hand-made facts of a target, as a lock file records them."""

from dataclasses import replace

from normscope.audit.report import StackFacts, TargetFacts

STACK = StackFacts(
    path="layers",
    blocks=2,
    placements=("all: attention pre-norm x + f(N(x)), mlp pre-norm x + f(N(x))",),
    norms=(
        "*.input_layernorm: RMSNorm eps 1e-06 gain w",
        "*.mlp: norm: RMSNorm eps 1e-06 gain w",
    ),
)
POST_MLP = "all: attention pre-norm x + f(N(x)), mlp post-norm N(x + f(x))"
FACTS = TargetFacts(
    class_name="LlamaModel",
    model_type="llama",
    revision=None,
    config="0123456789abcdef",
    dtype="float32",
    parameters=1000,
    placement="pre-norm",
    stacks=(STACK,),
    outside=("norm: RMSNorm eps 1e-06 gain w",),
    norm_calls=5,
)


def with_stack(**changes: object) -> TargetFacts:
    """Return the facts with something else in their one stack."""
    return replace(FACTS, stacks=(replace(STACK, **changes),))  # type: ignore[arg-type]
