"""The lines of a TOML file, beside what tomllib reads from the same text."""

import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from normscope.audit.toml_lines import toml_lines

WHOLE = '''\
# a comment with [brackets] and a = sign
top = 1

[[family]]
name = "a"  # another
targets = [
  "x", "y",
  # a comment between
  "z,]",
]
expect = { eps = 1e-5, gain = "w" }

  [family.expect2 . "encoder.layers"]
  'a b' = 2026-01-01 10:00:00
  text = """
[not.a.header]
\\""""
  raw = \'\'\'
key = "no"\'\'\'

[[family.override]]
targets = ["x"]
[[family.override]]
a.b.c = [[1,
  2], [3]]
[[family]]
[[family.override]]
last = { list = [
  1,
  { deep = 2 } ] }
'''


def test_every_shape_has_its_line():
    lines = toml_lines(WHOLE)
    assert lines[("top",)] == 2
    assert lines[("family", 0)] == 4
    assert lines[("family", 0, "targets")] == 6
    assert [lines[("family", 0, "targets", n)] for n in range(3)] == [7, 7, 9]
    assert lines[("family", 0, "expect", "eps")] == 11
    assert lines[("family", 0, "expect2", "encoder.layers")] == 13
    assert lines[("family", 0, "expect2", "encoder.layers", "a b")] == 14
    assert lines[("family", 0, "expect2", "encoder.layers", "raw")] == 18
    assert lines[("family", 0, "override", 1, "a", "b", "c", 0, 1)] == 25
    assert lines[("family", 1, "override", 0)] == 27
    assert lines[("family", 1, "override", 0, "last", "list", 1, "deep")] == 30


def test_there_is_no_path_that_the_document_has_not():
    assert set(toml_lines(WHOLE)) == set(paths(tomllib.loads(WHOLE)))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a = """x"""\nb = 1', 2),
        ('a = """x""""\nb = 1', 2),
        ('a = """x"""""\nb = 1', 2),
        ('a = """\nx\n"""\nb = 1', 4),
        ("a = '''x'''''\nb = 1", 2),
        ('a = ""\nb = 1', 2),
        ('a = """"""\nb = 1', 2),
        ('a = "\\\\"\nb = 1', 2),
        ("a = '\\'\nb = 1", 2),
        ("a = [\n]\nb = 1", 3),
        ("a = [1, # ]\n]\nb = 1", 3),
        ("a = {}\r\n\r\nb = 1", 3),
    ],
)
def test_a_string_or_a_list_ends_where_it_ends(text, line):
    tomllib.loads(text)
    assert toml_lines(text)[("b",)] == line


def paths(value, path=()):
    """Yield the path of every table, key and element."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from paths(item, (*path, key))


KEYS = st.one_of(
    st.sampled_from(["a", "b-c", "d_1", "9"]),
    st.text(st.sampled_from("ab.]'\"\\# \té"), max_size=4),
)
STRINGS = st.sampled_from(
    ["''", '"]"', '"""\n"x" ,\n"""', "'''\n[a]\n'''", '"# no"', r'"\u00e9\""']
)
NUMBERS = st.sampled_from(["1", "-2.5e3", "true", "1979-05-27 07:32:00", "0xff", "inf"])
BREAKS = st.sampled_from(["", " ", "\n", " # [c]\n", "\n\n"])


def written(key):
    bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
    return key if bare else json.dumps(key, ensure_ascii=False).replace("\t", "\\t")


def lists(values):
    made = st.lists(st.tuples(BREAKS, values, BREAKS).map("".join), max_size=3)
    return st.tuples(made, BREAKS).map(lambda it: f"[{','.join(it[0])}{it[1]}]")


def inline(values):
    pairs = st.dictionaries(KEYS.map(written), values, max_size=3)
    return pairs.map(lambda it: "{ " + ", ".join(f"{k} = {v}" for k, v in it.items()) + " }")


VALUES = st.recursive(STRINGS | NUMBERS, lambda inner: lists(inner) | inline(inner), max_leaves=6)
DOTTED = st.lists(KEYS.map(written), min_size=1, max_size=3).map(" . ".join)
LINES = st.one_of(
    DOTTED.map(lambda key: f"[{key}]"),
    DOTTED.map(lambda key: f"[[{key}]] # of many"),
    st.tuples(DOTTED, VALUES).map(" = ".join),
    BREAKS,
)


@given(st.lists(LINES, max_size=8).map("\n".join))
def test_paths_are_those_of_tomllib(text):
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    lines = toml_lines(text)
    assert set(lines) == set(paths(document))
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())
