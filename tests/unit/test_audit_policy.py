"""Policies that are right: a file of their own, and a part of a pyproject.toml."""

from dataclasses import fields
from pathlib import Path

import pytest

from normscope.audit.expectations import Expectation
from normscope.audit.policy import Place
from normscope.audit.policy_file import find_policy, read_policy
from normscope.errors import UsageError
from normscope.statistics import DEFAULT_THRESHOLDS, Thresholds

WHOLE = """\
select = ["NS"]
ignore = ["NS104"]

[[family]]
name = "encoders"
targets = ["type:bert", "type:roberta",
  "./checkpoints/*"]
select = ["NS1", "NS402"]
ignore = ["NS103"]
budget = { NS402 = 2 }

[family.expect]
placement = "post-norm"
norm = "LayerNorm"
eps = 1e-12
gain = "w"
bias = true

[family.expect.stacks."encoder.layers"]
placement = "pre-norm"
qk_norm = false

[[family.override]]
targets = ["type:roberta"]
expect = { eps = 1e-5 }
select = []
budget = { NS402 = 0 }

[[family]]
name = "rest"
targets = ["org/name@main"]
[family.expect]
final_norm = false
embedding_norm = true
parallel = true
statistics_dtype = "float32"
norms = 25
eps = 0

[stats]
input = ["one", "two"]
max_length = 64
verify = true
thresholds = { massive = 50, massive_channels = 2, error = 0.1 }
"""


def read(folder: Path, text: str, name: str = "normscope.toml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_policy(path)


def test_a_whole_policy(tmp_path):
    policy = read(tmp_path, WHOLE)
    file = (tmp_path / "normscope.toml").as_posix()
    assert (policy.file, policy.directory) == (file, tmp_path)
    assert (policy.select, policy.ignore) == (("NS",), ("NS104",))
    encoders, rest = policy.families
    assert (encoders.name, encoders.place) == ("encoders", Place(file=file, line=4))
    assert [(each.text, each.place.line) for each in encoders.targets] == [
        ("type:bert", 6),
        ("type:roberta", 6),
        ("./checkpoints/*", 7),
    ]
    assert encoders.expect == Expectation(
        placement="post-norm",
        norm="LayerNorm",
        eps=1e-12,
        gain="w",
        bias=True,
        stacks={"encoder.layers": Expectation(placement="pre-norm", qk_norm=False)},
    )
    assert (encoders.select, encoders.ignore) == (("NS1", "NS402"), ("NS103",))
    assert encoders.budget == {"NS402": 2}
    (override,) = encoders.overrides
    assert [each.text for each in override.targets] == ["type:roberta"]
    assert (override.expect, override.select) == (Expectation(eps=1e-5), ())
    assert (override.ignore, override.budget) == ((), {"NS402": 0})
    assert rest.select is None
    assert rest.expect == Expectation(
        final_norm=False,
        embedding_norm=True,
        parallel=True,
        statistics_dtype="float32",
        norms=25,
        eps=0.0,
    )


def test_what_is_measured(tmp_path):
    measuring = read(tmp_path, WHOLE).measuring
    assert measuring is not None
    assert (measuring.input, measuring.max_length, measuring.verify) == (("one", "two"), 64, True)
    assert measuring.thresholds == Thresholds(massive=50.0, massive_channels=2, error=0.1)


def test_one_text_is_a_list_of_one(tmp_path):
    measuring = read(tmp_path, '[stats]\ninput = "one"').measuring
    assert measuring is not None
    assert measuring.input == ("one",)
    assert (measuring.max_length, measuring.verify) == (None, False)
    assert measuring.thresholds == DEFAULT_THRESHOLDS


def test_nothing_is_measured_unless_the_policy_says_so(tmp_path):
    assert read(tmp_path, 'select = ["NS1"]').measuring is None


def test_every_fact_can_be_expected(tmp_path):
    values = {
        "placement": "mixed", "norm": "RMSNorm", "eps": 1e-6, "gain": "1+w", "bias": False,
        "final_norm": True, "embedding_norm": False, "qk_norm": True, "parallel": False,
        "statistics_dtype": "bfloat16", "norms": 0,
    }  # fmt: skip
    assert {*values, "stacks"} == {item.name for item in fields(Expectation)}
    lines = "\n".join(
        f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
        for key, value in values.items()
    )
    policy = read(tmp_path, f"[[family]]\nname = 'a'\ntargets = ['x']\n[family.expect]\n{lines}")
    assert policy.families[0].expect == Expectation(**values)


PROJECT = """\
[project]
name = "mine"
[tool.ruff]
line-length = 100
[tool.normscope]
ignore = ["NS1"]
[[tool.normscope.family]]
name = "a"
targets = ["type:bert"]
[tool.normscope.family.expect]
eps = 1e-5
"""


def test_a_part_of_a_pyproject_is_a_policy(tmp_path):
    policy = read(tmp_path, PROJECT, "pyproject.toml")
    assert policy.ignore == ("NS1",)
    (family,) = policy.families
    assert (family.place.line, family.targets[0].place.line) == (7, 9)
    assert family.expect == Expectation(eps=1e-5)


def test_another_pyproject_is_none(tmp_path):
    with pytest.raises(UsageError, match=r"there is no \[tool.normscope\]") as caught:
        read(tmp_path, "[tool.ruff]\n", "pyproject.toml")
    assert "normscope.toml" in caught.value.hint


class TestFinding:
    def test_a_folder_without_a_policy(self, tmp_path):
        (tmp_path / "pyproject.toml").write_text("[tool.ruff]\n")
        assert find_policy(tmp_path) is None

    def test_a_pyproject_with_one(self, tmp_path):
        (tmp_path / "pyproject.toml").write_text(PROJECT)
        assert find_policy(tmp_path) == tmp_path / "pyproject.toml"

    def test_a_file_of_its_own_is_before_it(self, tmp_path):
        (tmp_path / "pyproject.toml").write_text(PROJECT)
        (tmp_path / "normscope.toml").write_text("")
        assert find_policy(tmp_path) == tmp_path / "normscope.toml"

    def test_it_is_not_looked_for_elsewhere(self, tmp_path):
        (tmp_path / "normscope.toml").write_text("")
        (tmp_path / "below").mkdir()
        assert find_policy(tmp_path / "below") is None

    def test_a_pyproject_that_is_no_toml_has_a_line(self, tmp_path):
        (tmp_path / "pyproject.toml").write_text("a = 1\nb\n")
        with pytest.raises(UsageError, match=r"pyproject.toml:2: not TOML"):
            find_policy(tmp_path)


def test_a_byte_order_mark_and_windows_lines(tmp_path):
    path = tmp_path / "normscope.toml"
    path.write_bytes(b"\xef\xbb\xbf[[family]]\r\nname = 'a'\r\ntargets = ['x',\r\n'y']\r\n")
    (family,) = read_policy(path).families
    assert [each.place.line for each in family.targets] == [3, 4]


def test_codes_may_be_written_small(tmp_path):
    policy = read(
        tmp_path,
        'select = ["ns1"]\nignore = ["Ns104"]\n[[family]]\nname = "f"\ntargets = ["type:bert"]\n'
        "budget = { ns401 = 2 }\n",
    )
    assert (policy.select, policy.ignore) == (("NS1",), ("NS104",))
    assert policy.families[0].budget == {"NS401": 2}
