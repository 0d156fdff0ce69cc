"""Families, overrides and typed targets -> what each target is held against."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normscope.audit.assign import assign, shard
from normscope.audit.expectations import Expectation
from normscope.audit.policy import Assignment
from normscope.audit.policy_file import read_policy
from normscope.audit.rules import RULES
from normscope.errors import UsageError

USUAL = tuple(rule.code for rule in RULES if rule.usual)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("big", "small"):
        (tmp_path / "models" / name).mkdir(parents=True)
        (tmp_path / "models" / name / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def policy(text: str, path: str = "normscope.toml"):
    Path(path).write_text(text, encoding="utf-8")
    return read_policy(Path(path))


TWO = """\
[[family]]
name = "local"
targets = ["./models/*", "models/big"]
[family.expect]
placement = "pre-norm"
[[family]]
name = "all"
targets = ["type:bert", "models/small", "type:bert"]
"""


def seen(assignments):
    return [(each.family, each.target) for each in assignments]


def test_every_target_of_every_family_in_their_order(folder):
    found = assign(policy(TWO))
    assert seen(found) == [
        ("local", "models/big"),
        ("local", "models/small"),
        ("all", "type:bert"),
        ("all", "models/small"),
    ]
    assert [each.opened for each in found] == [
        "./models/big", "./models/small", "type:bert", "./models/small",
    ]  # fmt: skip
    assert [each.place.line for each in found] == [3, 3, 8, 8]
    assert [each.expect.placement for each in found] == ["pre-norm", "pre-norm", None, None]
    assert {each.rules for each in found} == {USUAL}


OVERRIDES = """\
[[family]]
name = "a"
targets = ["type:bert", "models/*"]
budget = { NS401 = 1, NS402 = 2 }
[family.expect]
eps = 1e-6
norm = "RMSNorm"
[family.expect.stacks."layers"]
gain = "w"
bias = false
[[family.override]]
targets = ["models/*"]
expect = { eps = 1e-5, stacks."layers" = { gain = "1+w" } }
[[family.override]]
targets = ["./models/big"]
budget = { NS402 = 0 }
expect = { eps = 1e-3 }
"""


def test_a_later_override_wins(folder):
    bert, big, small = assign(policy(OVERRIDES))
    assert (bert.expect.eps, big.expect.eps, small.expect.eps) == (1e-6, 1e-3, 1e-5)
    assert bert.budget == small.budget == {"NS401": 1, "NS402": 2}
    assert big.budget == {"NS401": 1, "NS402": 0}
    assert {each.expect.norm for each in (bert, big, small)} == {"RMSNorm"}
    assert bert.expect.stacks == {"layers": Expectation(gain="w", bias=False)}
    assert big.expect.stacks == small.expect.stacks
    assert small.expect.stacks == {"layers": Expectation(gain="1+w", bias=False)}


RULED = """\
select = ["NS1"]
ignore = ["NS103"]
[[family]]
name = "a"
targets = ["type:a", "type:b"]
ignore = ["NS105"]
[[family.override]]
targets = ["type:b"]
select = ["NS103", "NS105", "NS106", "NS107"]
ignore = ["NS106"]
[[family]]
name = "b"
targets = ["type:c"]
select = []
"""


def test_rules_of_policy_family_and_override(folder):
    first, second, third = assign(policy(RULED))
    begins = [rule.code for rule in RULES if rule.code.startswith("NS1")]
    assert first.rules == tuple(code for code in begins if code not in {"NS103", "NS105"})
    assert second.rules == ("NS107",)
    assert third.rules == ()


def test_patterns_that_match_nothing_are_told_at_once(folder):
    text = TWO.replace("./models/*", "./modls/*").replace('"type:bert", "m', '"x/*", "m')
    with pytest.raises(UsageError) as caught:
        assign(policy(text))
    found = [each.message for each in (caught.value, *caught.value.others)]
    assert found == [
        'normscope.toml:3: "./modls/*" matches nothing',
        'normscope.toml:8: "x/*" matches nothing',
    ]


def test_an_override_for_no_target_of_its_family(folder):
    text = OVERRIDES.replace("./models/big", "type:brt")
    with pytest.raises(UsageError) as caught:
        assign(policy(text))
    assert caught.value.message == 'normscope.toml:15: the override\'s "type:brt" is no target of a'
    assert caught.value.hint == "did you mean `type:bert`?"


def test_without_anything_to_do(folder):
    with pytest.raises(UsageError, match="no target was named, and no policy") as caught:
        assign(None)
    assert "--init" in caught.value.hint
    with pytest.raises(UsageError, match=r"normscope.toml: the policy has no \[\[family\]\]"):
        assign(policy('select = ["NS1"]'))


class TestTyped:
    def test_without_a_policy_they_get_the_usual_rules(self, folder):
        (found,) = assign(None, ["type:bert", "type:bert"])
        assert found == Assignment(target="type:bert", opened="type:bert", rules=USUAL)

    def test_those_of_a_family_get_its_expectations(self, folder):
        found = assign(policy(OVERRIDES), ["./models/big/", "type:bert", "type:gpt2"])
        assert seen(found) == [("a", "models/big"), ("a", "type:bert"), ("", "type:gpt2")]
        assert [each.expect.eps for each in found] == [1e-3, 1e-6, None]
        assert [each.opened for each in found] == ["models/big", "type:bert", "type:gpt2"]
        assert [each.place and each.place.line for each in found] == [3, 3, None]

    def test_in_two_families(self, folder):
        found = assign(policy(TWO), ["models/small"])
        assert seen(found) == [("local", "models/small"), ("all", "models/small")]

    def test_files_that_changed_are_their_folder(self, folder):
        found = assign(policy(TWO), ["models/big/config.json", "models/big"])
        assert seen(found) == [("local", "models/big")]

    def test_a_policy_in_another_folder(self, folder, monkeypatch):
        (folder / "ci").mkdir()
        read = policy(OVERRIDES.replace("models/", "../models/"), "ci/normscope.toml")
        monkeypatch.chdir(folder / "models")
        read = read_policy(Path("../ci/normscope.toml"))
        assert seen(assign(read, ["small"])) == [("a", "../models/small")]
        assert seen(assign(read))[1:] == [("a", "../models/big"), ("a", "../models/small")]

    def test_a_path_that_is_another_one_seen_from_the_policy(self, folder):
        (folder / "ci").mkdir()
        read = policy(TWO, "ci/normscope.toml")
        assert seen(assign(read, ["models/small"])) == [("", "models/small")]

    def test_globs_that_match_nothing_do_not_matter_to_them(self, folder):
        text = TWO.replace("./models/*", "./nothing/*")
        assert seen(assign(policy(text), ["type:bert"])) == [("all", "type:bert")]

    def test_a_glob_of_paths_takes_no_names(self, folder):
        text = '[[family]]\nname = "a"\ntargets = ["*", "*/*"]'
        assert seen(assign(policy(text), ["type:bert", "org/name"])) == [
            ("", "type:bert"),
            ("", "org/name"),
        ]

    def test_others_get_the_rules_of_the_policy(self, folder):
        (found,) = assign(policy(RULED), ["type:z"])
        assert found.rules == tuple(
            rule.code for rule in RULES if rule.code.startswith("NS1") and rule.code != "NS103"
        )


def made(names):
    return tuple(Assignment(target=name, opened=name) for name in names)


NAMES = st.sets(st.text(min_size=1, max_size=6), max_size=30).map(sorted)


class TestShards:
    @given(NAMES, st.integers(1, 7))
    def test_they_are_even_and_hold_everything_once(self, names, of):
        parts = [shard(made(names), part, of) for part in range(1, of + 1)]
        assert sorted(each.target for part in parts for each in part) == names
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1
        assert all([*part] == [e for e in made(names) if e in part] for part in parts)

    @given(NAMES, st.integers(1, 7), st.text(min_size=1, max_size=6))
    def test_an_added_target_moves_few_others(self, names, of, added):
        def home(all_names):
            return {e.target: p for p in range(of) for e in shard(made(all_names), p + 1, of)}

        before, after = home(names), home(sorted({*names, added}))
        moved = [name for name in names if before[name] != after[name]]
        assert len(moved) <= of - 1

    def test_the_order_of_the_targets_decides_nothing(self):
        names = [f"type:{n}" for n in range(20)]
        one = {each.target for each in shard(made(names), 1, 3)}
        assert {each.target for each in shard(made(names[::-1]), 1, 3)} == one

    def test_it_is_the_same_part_on_every_machine_and_alike_names_are_spread(self):
        names = [f"./models/llama-{n}" for n in range(6)]
        parts = [[each.target[-1] for each in shard(made(names), part, 3)] for part in (1, 2, 3)]
        assert parts == [["2", "4"], ["1", "5"], ["0", "3"]]

    def test_a_target_of_two_families_stays_together(self):
        both = [Assignment(target="x", opened="x", family=name) for name in ("a", "b")]
        parts = [shard(both, part, 2) for part in (1, 2)]
        assert sorted(map(len, parts)) == [0, 2]

    @pytest.mark.parametrize(("part", "of"), [(0, 5), (6, 5), (1, 0), (-1, 2)])
    def test_a_part_that_is_none(self, part, of):
        with pytest.raises(UsageError, match=f"there is no shard {part} of {of}"):
            shard(made(["a"]), part, of)
