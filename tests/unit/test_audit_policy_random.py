"""Whatever a policy file holds, there is a policy or a UsageError."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from normscope.audit.policy_file import find_policy, read_policy
from normscope.errors import UsageError

WORDS = st.sampled_from(
    [
        "[[family]]", "[family.expect]", "[[family.override]]", "[stats]", "[family.budget]",
        '[family.expect.stacks."a.b"]', "[family]", "[stats.thresholds]", "[tool.normscope]",
        "name", "targets", "expect", "select", "ignore", "budget", "input", "verify", "eps",
        "placement", "norms", "thresholds", "massive", "stacks", "override", "NS402",
        " = ", " = ", " = ", "\n", "\n", "\n", "[", "]", "{", "}", ",", "#", '"', "'", '"""',
        '"pre-norm"', '["NS1"]', "1e-5", "-1", "nan", "inf", "true", "1979-05-27", "1e999", ".",
        "0x" + "f" * 9999, "9" * 5000, '"\\u0000"', '"\\ud800"', "\0", "\x1b", "\ufeff", "[" * 900,
    ]
)  # fmt: skip
TEXTS = st.lists(WORDS | st.text(max_size=3), max_size=30).map("".join)
PATIENT = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@PATIENT
@given(TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=60))
@pytest.mark.parametrize("name", ["normscope.toml", "pyproject.toml"])
def test_random_files(tmp_path: Path, name: str, content: bytes):
    path = tmp_path / name
    path.write_bytes(content)
    with suppress(UsageError):
        read_policy(path)
    with suppress(UsageError):
        find_policy(tmp_path)


VALUES = st.recursive(
    st.sampled_from(
        ["1", "-1", "1.5", "nan", "true", '"x"', '""', '"NS402"', "07:32:00", "0x" + "f" * 9999]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2).map(lambda items: f"[{', '.join(items)}]"),
        inner.map(lambda item: f"{{ eps = {item} }}"),
        inner.map(lambda item: f"{{ NS402 = {item}, stacks = {item} }}"),
    ),
    max_leaves=4,
)
KEYS = st.sampled_from(
    [
        "name", "targets", "expect", "select", "ignore", "budget", "override", "family", "stats",
        "expect.placement", "expect.eps", "expect.norms", "expect.stacks", "expect.stacks.a",
        "input", "max_length", "verify", "thresholds", "thresholds.massive_channels", "other",
    ]
)  # fmt: skip
PAIRS = st.dictionaries(KEYS, VALUES, max_size=4)
TABLES = st.tuples(st.sampled_from(["", "[[family]]", "[[family.override]]", "[stats]"]), PAIRS)


def written(table: tuple[str, dict[str, str]]) -> str:
    header, pairs = table
    return "\n".join([header, *(f"{key} = {value}" for key, value in pairs.items())])


@PATIENT
@given(st.lists(TABLES.map(written), max_size=4).map("\n".join))
def test_every_key_with_every_type(tmp_path: Path, text: str):
    path = tmp_path / "normscope.toml"
    path.write_text(text, encoding="utf-8")
    with suppress(UsageError):
        policy = read_policy(path)
        assert all(family.name and family.targets for family in policy.families)
