"""`audit --init`: what is written is read back, and the same targets pass it."""

import json
import math
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from golden.inspections import (
    EVERY,
    IN,
    INSIDE,
    OUT,
    TRUNK,
    Part,
    Style,
    block,
    inspection,
    llama,
    norm,
    norms_of,
    stack,
    t5,
)
from normscope import inspect_checkpoint
from normscope.audit.assign import assign
from normscope.audit.expect_today import expect_today
from normscope.audit.expectations import Expectation
from normscope.audit.policy_file import read_policy
from normscope.audit.unmet import unmet
from normscope.audit.write_policy import policy_text
from normscope.errors import UsageError
from normscope.inspection import BranchKind, Inspection, Placement, Role


def read_back(folder: Path, targets: list[tuple[str, Inspection]]):
    path = folder / "normscope.toml"
    path.write_text(policy_text(targets), encoding="utf-8")
    return read_policy(path)


def against(folder: Path, targets: list[tuple[str, Inspection]]) -> dict[str, list[str]]:
    """Return what the policy that is written of targets finds in each of them."""
    found = dict(targets)
    assigned = assign(read_back(folder, targets))
    assert sorted(each.target for each in assigned) == sorted(found)
    return {
        each.target: [one.message for one in unmet(found[each.target], each.expect)]
        for each in assigned
    }


def test_the_text():
    assert policy_text([("./a", llama(2)), ("type:llama", llama(3)), ("./a", llama(2))]) == (
        "# What the targets were when `normscope audit --init` looked at them.\n"
        "# `normscope audit` reports whatever becomes otherwise; take out what need not stay.\n\n"
        "[[family]]\n"
        'name = "llama"\n'
        'targets = [\n  "./a",\n  "type:llama",\n]\n\n'
        "[family.expect]\n"
        'placement = "pre-norm"\n'
        'norm = "RMSNorm"\n'
        "eps = 1e-06\n"
        'gain = "w"\n'
        "bias = false\n"
        "final_norm = true\n"
        "embedding_norm = false\n"
        "qk_norm = false\n"
        "parallel = false\n"
        'statistics_dtype = "float32"\n'
    )


def test_the_count_of_norms_stands_where_it_is_shared():
    one, two = llama(2), llama(3)
    assert "norms = 5\n" in policy_text([("a", one)])
    assert "norms = 5\n" in policy_text([("a", one), ("b", one)])
    assert "\nnorms" not in policy_text([("a", one), ("b", two), ("c", one)])


def test_every_made_inspection_passes_what_is_written_of_it(tmp_path):
    targets = [(f"./{name}", made) for name, made in sorted(EVERY.items())]
    assert against(tmp_path, targets) == {name: [] for name, _ in targets}


def with_eps(made: Inspection, block_path: str, eps: float | None) -> Inspection:
    norms = [
        replace(each, eps=eps) if (each.block or "").startswith(block_path) else each
        for each in made.norms
    ]
    return replace(made, norms=tuple(norms))


class TestStacks:
    def test_what_stacks_share_is_said_once(self):
        assert expect_today(t5()).stacks == {}

    def test_what_they_do_not_is_said_of_each(self, tmp_path):
        made = with_eps(t5(), "decoder.block", 1e-5)
        found = expect_today(made)
        assert found.eps is None
        assert found.stacks == {
            "encoder.block": Expectation(eps=1e-6),
            "decoder.block": Expectation(eps=1e-5),
        }
        assert '\n[family.expect.stacks."decoder.block"]\neps = 1e-05\n' in policy_text(
            [("a", made)]
        )
        assert against(tmp_path, [("a", made)]) == {"a": []}

    def test_an_eps_that_went_through_float32_is_the_same(self):
        found = expect_today(with_eps(t5(), "encoder.block", 9.999999974752427e-07))
        assert (found.eps, found.stacks) == (1e-6, {})

    def test_what_differs_within_one_is_said_of_the_others(self):
        found = expect_today(with_eps(t5(), "decoder.block.3", 1e-5))
        assert found.eps is None
        assert found.stacks == {"encoder.block": Expectation(eps=1e-6)}

    def test_the_end_of_each_where_one_has_no_norm(self, tmp_path):
        made = t5()
        encoder, decoder = made.stacks
        ended = replace(encoder, ended_by=("encoder.final_layer_norm",))
        alike = (ended, replace(decoder, ended_by=("decoder.final_layer_norm",)))
        assert expect_today(replace(made, stacks=alike)).stacks == {}
        made = replace(made, stacks=(ended, replace(decoder, ended_by=())))
        assert expect_today(made).stacks == {
            "encoder.block": Expectation(final_norm=True),
            "decoder.block": Expectation(final_norm=False),
        }
        assert against(tmp_path, [("a", made)]) == {"a": []}

    def test_a_stack_without_norms_has_no_eps(self):
        made = with_eps(t5(), "encoder.block.3", 1e-5)
        norms = [each for each in made.norms if not (each.block or "").startswith("decoder")]
        assert expect_today(replace(made, norms=tuple(norms))).stacks == {}


def test_what_is_written_notices_a_change():
    today = expect_today(llama(3))
    changed = with_eps(llama(3), "layers.1", 1e-5)
    assert {each.message for each in unmet(changed, today)} == {
        "eps is 1e-05, and the policy expects 1e-06"
    }


class TestNames:
    def names(self, folder: Path, *targets: tuple[str, Inspection]) -> list[str]:
        return [family.name for family in read_back(folder, list(targets)).families]

    def of_type(self, name: str | None, made: Inspection) -> Inspection:
        return replace(made, model=replace(made.model, model_type=name))

    def test_families_of_one_type_are_numbered(self, tmp_path):
        other = with_eps(llama(), "layers", 1e-5)
        third = with_eps(llama(), "layers", 1e-4)
        assert self.names(tmp_path, ("a", llama()), ("b", other), ("c", third)) == [
            "llama",
            "llama 2",
            "llama 3",
        ]

    def test_a_family_of_few_types_lists_them(self, tmp_path):
        other = self.of_type("mistral", llama())
        assert self.names(tmp_path, ("a", llama()), ("b", other)) == ["llama, mistral"]

    def test_a_family_of_many_is_called_after_its_facts(self, tmp_path):
        many = [(f"./{n}", self.of_type(f"t{n}", llama())) for n in range(4)]
        assert self.names(tmp_path, *many) == ["pre-norm RMSNorm"]

    def test_a_model_without_a_type_is_called_after_its_class(self, tmp_path):
        assert self.names(tmp_path, ("a", self.of_type(None, llama()))) == ["LlamaModel"]

    @pytest.mark.parametrize("name", ['a"b\\c', "tab\there", "ä…\u202e", "\U0001f600\x7f", "n\nl"])
    def test_any_name_comes_back(self, tmp_path, name):
        (family,) = read_back(tmp_path, [(name, llama())]).families
        assert [each.text for each in family.targets] == [name]

    def test_a_name_that_toml_cannot_hold(self):
        with pytest.raises(UsageError, match="not UTF-8"):
            policy_text([("\udcff", llama())])

    def test_paths_are_seen_from_the_policy(self, tmp_path, monkeypatch):
        (tmp_path / "models" / "a").mkdir(parents=True)
        (tmp_path / "ci").mkdir()
        monkeypatch.chdir(tmp_path)
        names = ["models/a/", "org/name", "type:llama", (tmp_path / "models").as_posix()]
        text = policy_text([(name, llama()) for name in names], Path("ci"))
        listed = tomllib.loads(text)["family"][0]["targets"]
        assert listed == ["../models/a", "org/name", "type:llama", names[-1]]
        assert '"models/a"' in policy_text([("./models/a", llama())])


def test_without_targets_there_is_no_policy():
    with pytest.raises(UsageError, match="no target was inspected"):
        policy_text([])


PARTS = st.builds(
    Part,
    kind=st.sampled_from(list(BranchKind)),
    placement=st.sampled_from(list(Placement)),
    norms=st.sampled_from(
        [(), ((IN, "n", ()),), ((INSIDE, "q", ("x",)),), ((OUT, "o", ()), (TRUNK, "t", ()))]
    ),
    parallel=st.booleans(),
)
STYLES = st.builds(
    Style,
    kind=st.sampled_from(["LayerNorm", "RMSNorm", "OtherNorm"]),
    eps=st.sampled_from(
        [None, 0.0, 1e-5, 9.999999747378752e-06, 1e-12, math.nan, 0.1, math.inf, -1.0]
    ),
    gain=st.sampled_from(["w", "1+w", "none", "odd"]),
    bias=st.booleans(),
)
BLOCKS = st.tuples(st.lists(PARTS, max_size=2), STYLES)
STACKS = st.dictionaries(
    st.sampled_from(["encoder.layers", 'odd "path"', "h", "stages.*.blocks"]),
    st.tuples(st.lists(BLOCKS | st.shared(BLOCKS), min_size=1, max_size=3), st.booleans()),
    max_size=3,
)
OUTSIDE = st.lists(st.tuples(st.sampled_from(list(Role)), STYLES, st.sampled_from([0, 1])))


@st.composite
def made_inspections(draw) -> Inspection:
    stacks, blocks, norms = [], [], []
    for path, (rows, ends) in draw(STACKS).items():
        own = [block(f"{path}.{n}", path, n, parts) for n, (parts, _) in enumerate(rows)]
        ended = (f"{path}.end",) if ends else draw(st.sampled_from([None, ()]))
        stacks.append(replace(stack(path, own, [[n] for n in range(len(own))]), ended_by=ended))
        blocks += own
        for n, (parts, style) in enumerate(rows):
            norms += norms_of(f"{path}.{n}", parts, style)
        if ends:
            norms.append(norm(f"{path}.end", Role.FINAL, draw(STYLES)))
    for n, (role, style, calls) in enumerate(draw(OUTSIDE)):
        norms.append(norm(f"outside.{n}", role, style, calls=calls))
    return inspection("type:made", "Made", 1, stacks, blocks, norms)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(made_inspections(), min_size=1, max_size=3))
def test_any_inspection_passes_what_is_written_of_it(tmp_path, made):
    targets = [(f"./{number}", each) for number, each in enumerate(made)]
    assert against(tmp_path, targets) == {name: [] for name, _ in targets}


TWO = {"num_hidden_layers": 2}
SMALL = {
    "bert": TWO,
    "clip": {"text_config": TWO, "vision_config": TWO},
    "falcon": TWO,
    "gemma2": TWO,
    "mixtral": TWO,
    "olmo2": TWO,
    "qwen3": TWO,
    "swin": {"depths": [1, 2], "num_heads": [3, 6]},
    "t5": {"num_layers": 2},
    "whisper": {"encoder_layers": 2, "decoder_layers": 2},
}


def test_real_families_pass_what_is_written_of_them(tmp_path):
    targets = []
    for model_type, fields in SMALL.items():
        path = tmp_path / model_type / "config.json"
        path.parent.mkdir()
        path.write_text(json.dumps({"model_type": model_type, **fields}), encoding="utf-8")
        found = inspect_checkpoint(str(path))
        assert isinstance(found, Inspection), found
        targets.append((model_type, found))
    assert against(tmp_path, targets) == {name: [] for name in SMALL}
    policy = read_back(tmp_path, targets)
    expected = {each.text: family.expect for family in policy.families for each in family.targets}
    assert expected["gemma2"].gain == "1+w"
    assert expected["gemma2"].placement == "sandwich-norm"
    assert expected["bert"].eps == 1e-12
    assert expected["olmo2"].qk_norm is True
    assert expected["falcon"].parallel is True
