"""NormReport -> the facts that norms share, and how a view words them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from normscope.inspection import NormReport
from normscope.render.figures import one_of
from normscope.render.visible import visible

_MOST_SHAPES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class NormFacts:
    """What a norm computes, without its size."""

    kind: str
    groups: int | None
    over: str
    """The axes that supply the statistics, where they are not simply the last ones."""
    eps: str
    gain: str

    @classmethod
    def of(cls, norm: NormReport) -> Self:
        """Read the facts of one norm call."""
        return cls(
            kind=visible(norm.kind),
            groups=norm.groups,
            over=_axes_text(norm),
            eps=eps_text(norm),
            gain=gain_text(norm),
        )

    @property
    def divisor(self) -> str:
        """What is divided by: the kind, its groups and the axes that supply the statistics."""
        grouped = "" if self.groups is None else f" in {self.groups} groups"
        return f"{self.kind}{grouped}{self.over}"

    def __str__(self) -> str:
        return ", ".join((self.divisor, self.eps, self.gain))

    def beside(self, usual: Self | None) -> str:
        """Return only what differs from `usual`: "" for nothing, `eps 1e-06`, …"""
        if usual is None:
            return str(self)
        pairs = ((self.divisor, usual.divisor), (self.eps, usual.eps), (self.gain, usual.gain))
        return ", ".join(own for own, other in pairs if own != other)


def common_text(norms: Iterable[NormReport]) -> str:
    """Return what norms compute, as one text: `RMSNorm(4096), eps 1e-05 or 1e-06, gain w`."""
    shapes: dict[str, list[tuple[int, ...]]] = {}
    facts: dict[str, list[NormFacts]] = {}
    for norm in norms:
        own = NormFacts.of(norm)
        shapes.setdefault(own.divisor, []).append(norm.shape)
        facts.setdefault(own.divisor, []).append(own)
    return "; or ".join(
        f"{divisor.replace(found[0].kind, f'{found[0].kind}({shapes_text(shapes[divisor])})', 1)}, "
        f"{_either(f.eps for f in found)}, {_either(f.gain for f in found)}"
        for divisor, found in facts.items()
    )


def _either(texts: Iterable[str]) -> str:
    """Join `eps 1e-05` and `eps 1e-06` to `eps 1e-05 or 1e-06`, the most frequent first."""
    first, *others = (text for text, _ in Counter(texts).most_common())
    return one_of((first, *(text.removeprefix(f"{first.partition(' ')[0]} ") for text in others)))


def eps_text(norm: NormReport) -> str:
    """Return `eps 1e-06`, with its position where it is not inside the root."""
    if norm.eps is None:
        return "no eps"
    where = {"outside": " outside the root", "clamp": " as a floor"}.get(norm.eps_position, "")
    return f"eps {norm.eps:g}{where}"


def gain_text(norm: NormReport) -> str:
    """Return `gain w, bias`."""
    gains = {"none": "no gain", "other": "gain computed"}
    gain = gains.get(norm.gain, f"gain {visible(norm.gain)}")
    return f"{gain}, bias" if norm.bias else gain


def cast_text(norm: NormReport) -> str:
    """Return `cast before gain`, `no cast`, or "" where it is not known or there is no gain."""
    words = {"before gain": "cast before gain", "after gain": "cast after gain"}
    return words.get(norm.cast or "", norm.cast or "")


def shape_text(shape: tuple[int, ...]) -> str:
    """Return `768`, `14x14`."""
    return "x".join(str(size) for size in shape)


def shapes_text(shapes: Iterable[tuple[int, ...]]) -> str:
    """Return the distinct shapes: `96, 192 or 384`; of very many, the first and the last."""
    texts = [shape_text(shape) for shape in sorted(set(shapes), key=lambda s: (len(s), s))]
    if len(texts) > _MOST_SHAPES:
        return f"{texts[0]} to {texts[-1]}"
    return one_of(texts)


def _axes_text(norm: NormReport) -> str:
    if not norm.axes or norm.axes == tuple(range(-len(norm.shape), 0)):
        return ""
    noun = "axis" if len(norm.axes) == 1 else "axes"
    return f" over {noun} {', '.join(str(axis) for axis in norm.axes)}"
