"""What an operation does to a value, by its ATen name: keeps it, casts it, mixes it."""

CASTS = frozenset(
    {
        "_to_copy",
        "to",
        "clone",
        "contiguous",
        "detach",
        "alias",
        "lift_fresh",
        "_conj",
        "resolve_conj",
        "resolve_neg",
        "positive",
        "_autocast_to_full_precision",
    }
)
"""The same elements in the same places, perhaps in another dtype."""

RESHAPES = frozenset(
    {
        "view",
        "_unsafe_view",
        "reshape",
        "_reshape_alias",
        "t",
        "transpose",
        "permute",
        "expand",
        "unsqueeze",
        "squeeze",
        "flatten",
        "unflatten",
        "movedim",
        "swapaxes",
        "numpy_T",
        "view_as",
        "expand_as",
        "as_strided",
    }
)
"""The same elements, all of them, in other places."""

REARRANGEMENTS = frozenset(
    {
        "slice",
        "select",
        "narrow",
        "split",
        "split_with_sizes",
        "unbind",
        "chunk",
        "roll",
        "flip",
        "constant_pad_nd",
        "pad",
        "cat",
        "stack",
        "index_select",
        "gather",
        "index",
        "copy",
        "write",
        "repeat",
        "tile",
        "repeat_interleave",
        "unfold",
        "im2col",
        "col2im",
        "pixel_shuffle",
        "pixel_unshuffle",
        "channel_shuffle",
        "reflection_pad1d",
        "reflection_pad2d",
        "replication_pad1d",
        "replication_pad2d",
        "replication_pad3d",
        "diagonal",
        "select_scatter",
        "slice_scatter",
        "index_put",
        "index_copy",
        "index_add",
        "scatter",
        "scatter_add",
        "masked_scatter",
        "masked_select",
        "split_copy",
        "hstack",
        "vstack",
    }
)
"""Some of the elements, or pieces of several values put together."""

GUARDS = frozenset(
    {
        "dropout",
        "native_dropout",
        "masked_fill",
        "where",
        "clamp",
        "clamp_min",
        "clamp_max",
        "nan_to_num",
        "hardtanh",
    }
)
"""Leave ordinary elements as they are: dropout in eval mode, masks, clamps against overflow."""

MATRIX_PRODUCTS = frozenset(
    {
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "addbmm",
        "matmul",
        "linear",
        "mv",
        "addmv",
        "dot",
        "vdot",
        "_grouped_mm",
        "grouped_mm",
        "_int_mm",
        "_scaled_mm",
        "einsum",
        "tensordot",
        "_addmm_activation",
    }
)

CONVOLUTIONS = frozenset(
    {
        "convolution",
        "_convolution",
        "convolution_overrideable",
        "mkldnn_convolution",
        "cudnn_convolution",
        "thnn_conv2d",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "_slow_conv2d_forward",
        "slow_conv3d_forward",
        "_conv_depthwise2d",
    }
)

FUSED_ATTENTION = frozenset(
    {
        "scaled_dot_product_attention",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_fused_attention_overrideable",
        "_scaled_dot_product_attention_math",
        "_native_multi_head_attention",
        "_transformer_encoder_layer_fwd",
    }
)

FOURIER = frozenset({"_fft_r2c", "_fft_c2c", "_fft_c2r", "stft", "istft"})

POOLING = frozenset(
    {
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "max_pool1d",
        "max_pool2d",
        "max_pool2d_with_indices",
        "max_pool3d_with_indices",
        "adaptive_avg_pool1d",
        "adaptive_avg_pool2d",
        "_adaptive_avg_pool2d",
        "_adaptive_avg_pool3d",
        "adaptive_max_pool1d",
        "adaptive_max_pool2d",
        "fractional_max_pool2d",
    }
)

RECURRENT = frozenset(
    {
        "lstm",
        "gru",
        "rnn_tanh",
        "rnn_relu",
        "lstm_cell",
        "gru_cell",
        "mkldnn_rnn_layer",
        "_cudnn_rnn",
        "_thnn_fused_lstm_cell",
        "_thnn_fused_gru_cell",
    }
)

SAMPLING = frozenset({"grid_sampler_2d", "grid_sampler_3d", "_cdist_forward"})

MIXING = MATRIX_PRODUCTS | CONVOLUTIONS | FUSED_ATTENTION | FOURIER | POOLING | RECURRENT | SAMPLING
"""Combine elements of different channels or places by more than a rearrangement."""

SOFTMAX = frozenset({"softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax"})

ACTIVATIONS = frozenset(
    {
        "relu",
        "gelu",
        "silu",
        "mish",
        "elu",
        "leaky_relu",
        "hardswish",
        "tanh",
        "hardsigmoid",
        "sigmoid",
        "softplus",
        "relu6",
        "celu",
        "selu",
        "prelu",
        "_prelu_kernel",
        "log_sigmoid_forward",
        "hardshrink",
        "softshrink",
    }
)
"""Act on each element by itself."""

NORMALIZE = "normalize"
"""The one operation that stands for a whole norm in a condensed graph."""

INTEGER_DTYPES = frozenset({"int64", "int32", "int16", "int8", "uint8", "bool"})


def mixes(operation: str) -> bool:
    """Tell whether an operation mixes; an opaque custom operation is taken for one that does."""
    return operation in MIXING or "::" in operation


def keeps_elements(operation: str) -> bool:
    """Tell whether the result holds exactly the operand's elements, cast or reshaped."""
    return operation in CASTS or operation in RESHAPES
