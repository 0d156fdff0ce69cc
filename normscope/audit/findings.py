"""What an audit finds: observations of one place, merged into findings of one target."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from normscope.inspection import BlockReport


class Severity(StrEnum):
    """How bad a finding is; `--fail-on` draws the line."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0 for a note, 2 for an error."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a rule says of one place, before it is known whose target it is."""

    where: str
    """Path of a block, name of a norm or of a parameter, or "" for the model."""
    message: str
    """What was found and what was expected there, without the place: `eps is 1e-06, …`."""
    found: str = ""
    expected: str = ""
    """Both in words that stay the same for ever: they are part of a finding's identity."""
    severity: Severity | None = None
    """Where it is another one than the rule's own."""
    block: BlockReport | None = None
    """The block that `where` is or stands in: like blocks share a finding."""
    likeness: str | None = None
    """`where` with `*` for the numbers that do not matter, where no block tells them."""
    detail: str = ""
    """What is so at this place alone (`3 of 768 channels`): like places may differ in it."""

    @property
    def alike(self) -> str:
        """`where` with `*` for the number of its block: `layers.*.input_layernorm`."""
        if self.likeness is not None:
            return self.likeness
        block = self.block
        if block is None or block.stack is None or block.index is None:
            return self.where
        return _without_number(self.where, block)


def _without_number(where: str, block: BlockReport) -> str:
    """Put `*` for the block's number, and for those of the stages that its stack is spread over."""
    if where != block.path and not where.startswith(f"{block.path}."):
        return where
    owner, _, number = block.path.rpartition(".")
    if not number.isdecimal():
        return where
    spread = block.stack is not None and "*" in block.stack
    return f"{block.stack if spread else owner}.*{where[len(block.path) :]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One violated rule in one target: at one place, or at the same place of many blocks."""

    code: str
    severity: Severity
    target: str
    family: str
    where: str
    """The place, with `*` for the numbers of blocks; "" for the model."""
    places: tuple[str, ...]
    """Every place as the model names it, in order of execution."""
    message: str
    detail: str = ""
    """What ends the message and is so in this target alone: `3 of 768 channels`."""
    found: str = ""
    expected: str = ""
    known: bool = False
    """Whether the baseline has it already."""

    @property
    def gist(self) -> str:
        """The message without its detail: what other targets can have alike."""
        return self.message.removesuffix(f": {self.detail}") if self.detail else self.message

    @property
    def identity(self) -> tuple[str, str, str, str, str]:
        """What stays the same when layers are added, and under another version or machine."""
        return (self.code, self.target, self.where, self.found, self.expected)

    @property
    def fingerprint(self) -> str:
        """The identity as 32 hexadecimal digits."""
        return fingerprint_of(self.identity)


def fingerprint_of(identity: tuple[str, str, str, str, str]) -> str:
    """Return what a finding is told by in files of other tools: 32 hexadecimal digits."""
    text = json.dumps(identity, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def merged(
    code: str, usual: Severity, target: str, family: str, observations: Iterable[Observation]
) -> tuple[Finding, ...]:
    """Return one finding for each distinct observation, in the order in which they were made."""
    found: dict[tuple[str, str, str, str, Severity], list[Observation]] = {}
    for seen in observations:
        severity = seen.severity or usual
        key = (seen.alike, seen.message, seen.found, seen.expected, severity)
        found.setdefault(key, []).append(seen)
    return tuple(
        Finding(
            code=code,
            severity=severity,
            target=target,
            family=family,
            where=where,
            places=tuple(dict.fromkeys(seen.where for seen in like)),
            message=f"{message}: {detail}" if detail else message,
            detail=detail,
            found=was,
            expected=wanted,
        )
        for (where, message, was, wanted, severity), like in found.items()
        for detail in (_detail([seen.detail for seen in like]),)
    )


def _detail(details: list[str]) -> str:
    """Return what is so at every place, or at the first of several."""
    differ = details[0] and len(set(details)) > 1
    return f"{details[0]} at the first place" if differ else details[0]
