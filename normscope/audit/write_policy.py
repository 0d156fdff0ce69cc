"""Targets and their inspections -> the text of a policy that they pass."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path

from normscope.audit.expect_today import expect_today
from normscope.audit.expectations import Expectation
from normscope.audit.policy_targets import typed_paths
from normscope.errors import UsageError
from normscope.inspection import Inspection

_HEAD = """\
# What the targets were when `normscope audit --init` looked at them.
# `normscope audit` reports whatever becomes otherwise; take out what need not stay.
"""
_NAMED_TYPES = 3
"""As many model types a family's name lists."""
_SURROGATES = (0xD800, 0xDFFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """Targets of which the same is expected."""

    targets: tuple[str, ...]
    types: tuple[str, ...]
    expect: Expectation


def policy_text(targets: Sequence[tuple[str, Inspection]], folder: Path = Path()) -> str:
    """Return a policy for `folder` whose families are the targets with equal facts.

    Relative paths are written as they are seen from there. Raises `UsageError` where there is no
    target, or one whose name TOML cannot hold.
    """
    if not targets:
        raise UsageError("no target was inspected: there is nothing to expect")
    found = {_seen_from(folder, target): inspection for target, inspection in targets}
    return "\n".join([_HEAD, *(_family(group, name) for group, name in _named(_grouped(found)))])


def _seen_from(folder: Path, target: str) -> str:
    if target.startswith(("/", "~")):
        return target
    names = (name for name, _ in typed_paths(target, folder))
    return next(names, target)


def _grouped(targets: Mapping[str, Inspection]) -> list[_Group]:
    """Group by all but the count of norms, which is kept where a group shares it."""
    groups: list[_Group] = []
    for target, inspection in targets.items():
        today = expect_today(inspection)
        own = _Group(
            targets=(target,),
            types=(inspection.model.model_type or inspection.model.class_name,),
            expect=today,
        )
        like = (number for number, group in enumerate(groups) if _alike(group.expect, today))
        number = next(like, None)
        if number is None:
            groups.append(own)
        else:
            groups[number] = _joined(groups[number], own)
    return groups


def _alike(one: Expectation, other: Expectation) -> bool:
    return replace(one, norms=None) == replace(other, norms=None)


def _joined(group: _Group, other: _Group) -> _Group:
    norms = group.expect.norms if group.expect.norms == other.expect.norms else None
    return _Group(
        targets=group.targets + other.targets,
        types=tuple(dict.fromkeys(group.types + other.types)),
        expect=replace(group.expect, norms=norms),
    )


def _named(groups: Sequence[_Group]) -> Iterator[tuple[_Group, str]]:
    """Yield each group with a name that no other has: its model type, where it has one."""
    taken: set[str] = set()
    for group in groups:
        wanted = _name(group)
        name = next(each for each in _numbered(wanted) if each not in taken)
        taken.add(name)
        yield group, name


def _name(group: _Group) -> str:
    if len(group.types) <= _NAMED_TYPES:
        return ", ".join(group.types)
    words = (group.expect.placement, group.expect.norm)
    return " ".join(word for word in words if word is not None) or "others"


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name} {number}" for number in count(2))


def _family(group: _Group, name: str) -> str:
    targets = [_quoted(target) for target in group.targets]
    listed = f"[{targets[0]}]" if len(targets) == 1 else "[\n  " + ",\n  ".join(targets) + ",\n]"
    tables = ["[family.expect]", *_facts(group.expect)]
    for path, expect in group.expect.stacks.items():
        tables += ["", f"[family.expect.stacks.{_quoted(path)}]", *_facts(expect)]
    head = ["[[family]]", f"name = {_quoted(name)}", f"targets = {listed}", ""]
    return "\n".join([*head, *tables, ""])


def _facts(expect: Expectation) -> Iterator[str]:
    for item in fields(expect):
        value = getattr(expect, item.name)
        if value is not None and item.name != "stacks":
            yield f"{item.name} = {_value(value)}"


def _value(value: str | float | bool) -> str:
    if isinstance(value, str):
        return _quoted(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _quoted(text: str) -> str:
    """Return a TOML string; what is not seen is written as an escape."""
    return f'"{"".join(_escaped(character) for character in text)}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    code = ord(character)
    if _SURROGATES[0] <= code <= _SURROGATES[1]:
        raise UsageError("a target's name is not UTF-8, and a policy cannot hold it")
    return f"\\U{code:08x}"
