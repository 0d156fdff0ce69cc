"""Whatever a file, a config or a graph holds: an answer, or a failure of a kind that has a name."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normscope.cli.budgets import read_budget
from normscope.errors import FailureKind, NormscopeError
from normscope.graph import Graph, Node, Origin
from normscope.inspection import Uninspectable
from normscope.pipeline import InspectOptions, inspect_checkpoint, placed_root
from normscope.tracing import trace_module
from normscope.weights.files import find_weight_files
from normscope.weights.safetensors_folder import SafetensorsFolder
from specimens.build import build
from specimens.damage import damaged
from specimens.readers import READERS, Reader
from specimens.spec import Spec

QUICK = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SEEDS = st.integers(0, 2**32)


# Readers.


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_a_damaged_file_is_read_or_refused(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / reader.name
    good = reader.content(tmp_path)
    path.write_bytes(good)
    reader.read(path)

    @settings(QUICK, max_examples=60)
    @given(SEEDS)
    def read(seed: int) -> None:
        path.write_bytes(damaged(good, random.Random(seed)))
        try:
            reader.read(path)
        except reader.errors as error:
            assert str(error)  # noqa: PT017  # any of several

    read()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
TENSORS = st.dictionaries(
    st.text(max_size=6) | st.just("__metadata__"),
    JSON
    | st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(["F32", "F16", "BF16", "I64", "BOOL", "F4", "X"]) | JSON,
            "shape": st.lists(st.integers(-1, 2**64), max_size=3) | JSON,
            "data_offsets": st.lists(st.integers(-1, 2**64), min_size=2, max_size=2) | JSON,
        }
    ),
    max_size=3,
)


@settings(QUICK, max_examples=150)
@given(header=TENSORS, length=st.none() | st.integers(0, 2**64 - 1), data=st.binary(max_size=16))
def test_a_made_header_is_corrupt_or_read(
    tmp_path: Path, header: dict[str, object], length: int | None, data: bytes
) -> None:
    text = json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    size = len(text) if length is None else length
    path.write_bytes(size.to_bytes(8, "little") + text + data)
    try:
        folder = SafetensorsFolder("t", find_weight_files("t", tmp_path))
        list(folder.read(folder.describe()))
    except NormscopeError as error:
        assert error.kind is FailureKind.CORRUPT  # noqa: PT017  # the one kind that may come


# Configs.

TINY = {
    "bert": {
        "vocab_size": 16, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 8, "max_position_embeddings": 8, "layer_norm_eps": 1e-12,
        "hidden_act": "gelu", "type_vocab_size": 2, "pad_token_id": 0, "is_decoder": False,
    },
    "llama": {
        "vocab_size": 16, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "num_key_value_heads": 1, "intermediate_size": 8, "rms_norm_eps": 1e-6,
        "hidden_act": "silu", "rope_theta": 1e4, "rope_scaling": None, "head_dim": 4,
        "tie_word_embeddings": False, "attention_bias": False,
    },
    "gpt2": {
        "vocab_size": 16, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 8,
        "layer_norm_epsilon": 1e-5, "activation_function": "gelu", "n_inner": None,
    },
    "t5": {
        "vocab_size": 16, "d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2,
        "layer_norm_epsilon": 1e-6, "feed_forward_proj": "relu", "decoder_start_token_id": 0,
    },
}  # fmt: skip
EVERYWHERE = (
    "architectures", "dtype", "torch_dtype", "id2label", "label2id", "num_labels", "auto_map",
    "quantization_config", "_attn_implementation", "transformers_version", "use_cache",
    "bos_token_id", "is_encoder_decoder", "sub_configs", "attn_implementation", "tokenizer_class",
    "_name_or_path",
)  # fmt: skip
VALUES = JSON | st.sampled_from(
    [0, -1, 1, 3, 10**9, 2**63, 1e-300, 1e300, "", "x", "float16", "complex64", "gelu", [], {}, [0]]
)


@st.composite
def configs(draw: st.DrawFn) -> dict[str, object]:
    name = draw(st.sampled_from(sorted(TINY)))
    config: dict[str, object] = {"model_type": name, **TINY[name]}
    for field in draw(
        st.lists(st.sampled_from([*TINY[name], *EVERYWHERE]), min_size=1, max_size=2)
    ):
        config[field] = draw(VALUES)
    return config


@settings(QUICK, max_examples=40)
@given(config=configs())
def test_a_config_with_any_values_has_an_answer_or_a_reason(
    tmp_path: Path, config: dict[str, object]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    answer = inspect_checkpoint(
        str(tmp_path), InspectOptions(cache=False, offline=True, limits=read_budget())
    )
    if isinstance(answer, Uninspectable):
        assert answer.kind is not FailureKind.INTERNAL
        assert answer.message
        assert answer.hint


# Graphs.

UNARY = (
    "mean", "sum", "pow", "rsqrt", "sqrt", "reciprocal", "gelu", "softmax", "view", "transpose",
    "neg", "var", "linalg_vector_norm", "clone",
)  # fmt: skip
BINARY = ("add", "mul", "sub", "div", "mm", "bmm", "maximum")
TERNARY = ("addcmul", "addmm", "where")
FUSED_NORMS = frozenset({"native_layer_norm", "layer_norm", "rms_norm"})


def graph_of(spec: Spec) -> Graph:
    module, x = build(spec)
    return trace_module(module, {}, (x,))


BASES = [
    graph_of(Spec(placement="sandwich-norm", depth=2, sublayer="attention", final_norm=True)),
    graph_of(Spec(placement="post-norm", norm="rms_rsqrt", depth=2, noise="layer_scale")),
    graph_of(Spec(placement="pre-norm", norm="layer_rsqrt", depth=2, parent_adds=True)),
]


def rewired(graph: Graph, chance: random.Random) -> Graph:
    """Return a graph that is as well formed, in which a few nodes do something else."""
    nodes = list(graph.nodes)
    for _ in range(chance.randint(1, 8)):
        place = chance.randrange(len(nodes))
        nodes[place] = _changed(nodes[place], graph, chance)
    outputs = graph.outputs if chance.random() < 0.7 else (chance.randrange(len(nodes)),)
    return replace(graph, nodes=tuple(nodes), outputs=outputs)


def _changed(node: Node, graph: Graph, chance: random.Random) -> Node:
    """Change what a node reads, does, is or belongs to, as far as its operation allows it."""
    if node.origin is not Origin.OPERATION or not node.operands:
        return node
    what = chance.randrange(5)
    if what == 0 and len(node.operands) <= 3 and node.operation not in FUSED_NORMS:
        alike = (UNARY, BINARY, TERNARY)[len(node.operands) - 1]
        return replace(node, operation=chance.choice(alike))
    if what == 1:
        return replace(node, shape=chance.choice([(1,), (0, 16), (2, 6, 16), (16,), (2, 6, 1)]))
    if what == 2 and node.operation in BINARY:  # a number in place of the second tensor
        kept = chance.randrange(len(node.operands))
        return replace(
            node,
            operands=(node.operands[kept],),
            slots=node.slots[kept : kept + 1],
            arguments={"other": chance.choice([0, 1, -1, 0.5, 2, True])},
        )
    if what == 3:
        return replace(node, module=chance.choice(sorted(graph.modules)))
    operands = (
        chance.randrange(node.index) if chance.random() < 0.5 else operand
        for operand in node.operands
    )
    return replace(node, operands=tuple(operands))


@settings(QUICK, max_examples=250)
@given(base=st.sampled_from(range(len(BASES))), seed=SEEDS)
def test_a_graph_of_anything_is_placed(base: int, seed: int) -> None:
    graph = rewired(BASES[base], random.Random(seed))
    placed_root("", graph)
