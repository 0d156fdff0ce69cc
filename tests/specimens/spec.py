"""What a specimen is: every fact that an inspection of it has to give back."""

from dataclasses import dataclass

SITES = {
    "pre-norm": ("input",),
    "post-norm": ("trunk",),
    "res-post-norm": ("output",),
    "sandwich-norm": ("input", "output"),
    "pre+post": ("input", "trunk"),
    "no-norm": (),
}
NORMS = (
    "layer_module",
    "rms_module",
    "layer_functional",
    "layer_rsqrt",
    "layer_var",
    "rms_rsqrt",
    "rms_one_over_sqrt",
    "rms_pow",
    "rms_vector_norm",
    "rms_offset",
    "layer_gain_first",
    "layer_gain_on_scale",
    "rms_gain_first",
    "rms_gain_on_scale",
)
KINDS = {name: "LayerNorm" if name.startswith("layer") else "RMSNorm" for name in NORMS}
SUBLAYERS = ("linear", "attention", "conv", "mlp")
ADDS = ("plain", "swapped", "inplace", "torch_add", "addcmul", "child", "scaled")
NOISES = ("none", "cast", "view", "dropout", "layer_scale", "mask")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """One specimen: a stack of equal blocks, one branch each."""

    placement: str = "pre-norm"
    norm: str = "layer_module"
    sublayer: str = "mlp"
    add: str = "plain"
    noise: str = "none"
    depth: int = 3
    width: int = 16
    final_norm: bool = False
    parent_adds: bool = False
    """The parent's forward holds norms and adds, in sibling lists; the blocks hold the branch."""
