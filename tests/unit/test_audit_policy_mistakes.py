"""Policies that are wrong: each mistake has its line and the nearest word."""

from pathlib import Path

import pytest

from normscope.audit.policy_file import read_policy
from normscope.errors import UsageError

FAMILY = '[[family]]\nname = "a"\ntargets = ["x"]\n'


def mistakes(folder: Path, text: str, name: str = "normscope.toml") -> list[UsageError]:
    """Return what is wrong with a policy, without the folder in the messages."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_policy(path)
    found = [caught.value, *caught.value.others]
    begin = f"{folder.as_posix()}/"
    return [UsageError(each.message.removeprefix(begin), each.hint) for each in found]


def mistake(folder: Path, text: str) -> tuple[str, str]:
    (found,) = mistakes(folder, text)
    return found.message, found.hint


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('\nselct = ["NS"]', ":2: a policy has no key `selct`", "did you mean `select`?"),
        ("zzz = 1", ":1: a policy has no key `zzz`", "its keys: `family`, `select`, `ignore`, `st"),
        ('[[famly]]\nname = "a"', ":1: a policy has no key `famly`", "did you mean `family`?"),
        (FAMILY + "target = 1", ":4: [[family]] has no key `target`", "did you mean `targets`?"),
        (FAMILY + "eps = 1e-5", ":4: [[family]] has no key `eps`", "belongs in [family.expect]"),
        (FAMILY + "expect = { ep = 1 }", ":4: [family.expect] has no key `ep`", "mean `eps`?"),
        (
            FAMILY + "[[family.override]]\ntargets = ['x']\nname = 'b'",
            ":6: [[family.override]] has no key `name`",
            "its keys: `targets`, ",
        ),
        (
            FAMILY + '[family.expect.stacks."l"]\nplacment = "pre-norm"',
            ':5: [family.expect.stacks."l"] has no key `placment`',
            "did you mean `placement`?",
        ),
        (
            FAMILY + '[family.expect.stacks."l"]\nembedding_norm = true',
            ':5: [family.expect.stacks."l"] has no key `embedding_norm`',
            "belongs in [family.expect]: it is a fact of the model",
        ),
        ("[stats]\ninput = 'x'\nsink = 1", ":3: [stats] has no key `sink`", "[stats.thresholds]"),
        ("[tool.normscope]", ":1: a policy has no key `tool`", "keys stand at the top"),
        ('targets = ["x"]', ":1: a policy has no key `targets`", "belongs in [[family]]"),
    ],
)
def test_an_unknown_key(tmp_path, text, message, hint):
    found, said = mistake(tmp_path, text)
    assert found.startswith(f"normscope.toml{message}")
    assert hint in said


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ('placement = "prenorm"', '`placement` cannot be "prenorm"', "did you mean `pre-norm`?"),
        ('placement = "unknown"', "no placement to expect", "known: `pre-norm`, `post-norm`"),
        ('norm = "rmsnorm"', '`norm` cannot be "rmsnorm"', "did you mean `RMSNorm`?"),
        ('gain = "2+w"', '`gain` cannot be "2+w", which is no form', "did you mean `1+w`?"),
        ('statistics_dtype = "floot16"', "which is no dtype of", "did you mean `float16`?"),
        ("eps = -1e-5", "`eps` must be 0 or more and finite, not -1e-05", ""),
        ("eps = nan", "`eps` must be 0 or more and finite, not nan", ""),
        ("eps = inf", "`eps` must be 0 or more and finite, not inf", ""),
        ('eps = "1e-5"', '`eps` must be a number, and is a string: "1e-5"', "write `eps = 1e-5`,"),
        ('eps = "small"', '`eps` must be a number, and is a string: "small"', ""),
        ("eps = true", "`eps` must be a number, and is a truth value: true", ""),
        ("eps = [1]", "`eps` must be a number, and is a list", ""),
        ("eps = 0x" + "f" * 9999, "`eps` must be 0 or more and finite, not so large a number", ""),
        ("norms = 0x" + "f" * 9999, "`norms` must be a count of something, not so large", ""),
        ("norms = -1", "`norms` must be at least 0, not -1", ""),
        ("norms = 2.0", "`norms` must be a whole number, and is a number: 2.0", ""),
        ('bias = "yes"', '`bias` must be true or false, and is a string: "yes"', ""),
        ("qk_norm = 0", "`qk_norm` must be true or false, and is a whole number: 0", ""),
        ("placement = 2026-01-01", "`placement` must be a string, and is a date", ""),
        ("stacks = []", "`stacks` must be a table, and is a list", "write it as [family.expect."),
    ],
)
def test_a_value_that_cannot_be_expected(tmp_path, line, message, hint):
    found, said = mistake(tmp_path, f"{FAMILY}[family.expect]\n\n{line}")
    assert found.startswith("normscope.toml:6: ")
    assert message in found
    assert (hint in said) if hint else (said == "")


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        (
            'select = ["NS1", "NS1O1"]',
            '"NS1O1" is no rule, and no rule begins with it',
            "mean NS101?",
        ),
        ('select = ["ns110"]', '"ns110" is no rule', "did you mean NS10"),
        ('ignore = ["PLR0913"]', '"PLR0913" is no rule', "codes begin with NS1, NS2"),
        ('select = "NS1"', '`select` must be a list of strings, and is a string: "NS1"', '["NS1"]'),
        ('select = [""]', "`select` has an empty string", ""),
        ("budget = { NS101 = 1 }", "NS101 has no budget", "ignore NS101"),
        ("budget = { NS402 = -1 }", "`NS402` must be at least 0, not -1", ""),
        ('budget = { NS402 = "1" }', "`NS402` must be a whole number, and is a string", ""),
        ("budget = { NS4 = 1 }", '"NS4" is no rule', ""),
    ],
)
def test_a_rule_that_is_none(tmp_path, line, message, hint):
    found, said = mistake(tmp_path, FAMILY + line)
    assert found.startswith("normscope.toml:4: ")
    assert message in found
    assert hint in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[family]]\ntargets = ["x"]', ":1: a family has no name"),
        ('[[family]]\nname = " "\ntargets = ["x"]', ":2: a family has no name"),
        ('[[family]]\nname = "a"', ':1: the family "a" has no targets'),
        ('[[family]]\nname = "a"\ntargets = []', ':3: the family "a" has no targets'),
        (FAMILY + "[[family.override]]\neps = 1", ":4: an override has no targets"),
        (FAMILY + FAMILY, ':5: there are two families named "a"'),
        (FAMILY.replace('"x"', '"x",\n"a\\u0000"'), ":4: a target has a NUL character"),
        (FAMILY.replace('"x"', '"x",\n" -"'), ':4: " -" is standard input, which a policy does'),
        (FAMILY.replace('"x"', '"x",\n\n3'), ":5: `targets` must be a list of strings alone"),
        ('[family]\nname = "a"', ":1: `family` must be an array of tables, and is a table"),
        ("[stats]", ":1: [stats] has no input to measure on"),
        ("[stats]\ninput = ''", ":2: [stats] has no input to measure on"),
        ("[stats]\ninput = []", ":2: [stats] has no input to measure on"),
        ("[stats]\ninput = 3", ":2: `input` must be a list of strings, and is a whole number: 3"),
        ("stats = 3", ":1: `stats` must be a table, and is a whole number: 3"),
        ("[stats]\ninput = 'a'\nmax_length = 0", ":3: `max_length` must be at least 1, not 0"),
        ("[stats]\ninput = 'a'\nthresholds.sink = -1", ":3: `sink` must be 0 or more and finite"),
    ],
)
def test_what_does_not_go_together(tmp_path, text, message):
    assert any(
        found.message.startswith(f"normscope.toml{message}") for found in mistakes(tmp_path, text)
    )


@pytest.mark.parametrize("targets", ["'x'", "3", "[3]", "[2026-01-01]"])
def test_targets_of_another_type_are_not_missing_as_well(tmp_path, targets):
    found, _ = mistake(tmp_path, f'[[family]]\nname = "a"\ntargets = {targets}')
    assert found.startswith("normscope.toml:3: `targets` must be a list of strings")


def test_two_families_with_one_name_name_the_first(tmp_path):
    assert mistake(tmp_path, FAMILY + FAMILY)[1] == "the first stands in line 2"


def test_two_families_with_two_names_are_none(tmp_path):
    path = tmp_path / "normscope.toml"
    path.write_text(FAMILY + FAMILY.replace('"a"', '"b"'))
    assert [family.name for family in read_policy(path).families] == ["a", "b"]


def test_all_mistakes_are_told_in_the_order_of_their_lines(tmp_path):
    text = f'[stats]\nverify = 1\n{FAMILY}exect = 1\nselect = 3\n[[family]]\nname = "b"'
    found = [each.message.split(": ")[0] for each in mistakes(tmp_path, text)]
    assert found == [f"normscope.toml:{line}" for line in (1, 2, 6, 7, 8)]


def test_mistakes_of_a_pyproject_have_its_lines(tmp_path):
    text = "[project]\nname = 'a'\n\n[tool.normscope]\nselct = []\n[[tool.normscope.family]]\n"
    found = [each.message.split(": ")[0] for each in mistakes(tmp_path, text, "pyproject.toml")]
    assert found == ["pyproject.toml:5", "pyproject.toml:6", "pyproject.toml:6"]


class TestNotToml:
    def test_the_line_is_that_of_tomllib(self, tmp_path):
        message, _ = mistake(tmp_path, "a = 1\nselect = [NS]\n")
        assert message == "normscope.toml:2: not TOML: Invalid value (column 11)"

    def test_at_the_end(self, tmp_path):
        message, _ = mistake(tmp_path, 'a = 1\nb = """\n')
        assert message.startswith("normscope.toml:2: not TOML: ")
        assert message.endswith(" (the file ends there)")

    def test_a_table_in_braces_takes_no_more(self, tmp_path):
        text = f"{FAMILY}expect = {{ eps = 1 }}\n[family.expect.stacks.a]\n"
        message, hint = mistake(tmp_path, text)
        assert message.startswith("normscope.toml:5: not TOML: ")
        assert "with a header" in hint

    def test_another_encoding(self, tmp_path):
        path = tmp_path / "normscope.toml"
        path.write_bytes(b"a = 1\n# \xe9\n")
        with pytest.raises(UsageError, match=r"normscope.toml:2: not UTF-8: "):
            read_policy(path)

    def test_values_nested_without_end(self, tmp_path):
        (found,) = mistakes(tmp_path, "a = " + "[" * 5000)
        assert "not TOML" in found.message


class TestUnreadable:
    def test_no_file(self, tmp_path):
        with pytest.raises(UsageError, match="No such file") as caught:
            read_policy(tmp_path / "none.toml")
        assert "--init" in caught.value.hint

    def test_a_folder(self, tmp_path):
        with pytest.raises(UsageError, match="cannot be read: Is a directory"):
            read_policy(tmp_path)

    def test_no_permission(self, tmp_path, monkeypatch):
        def refuse(_path):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "read_bytes", refuse)
        with pytest.raises(UsageError, match="cannot be read: Permission denied"):
            read_policy(tmp_path / "normscope.toml")

    def test_a_nul_in_its_name(self):
        with pytest.raises(UsageError, match="is no path"):
            read_policy(Path("a\0b"))
