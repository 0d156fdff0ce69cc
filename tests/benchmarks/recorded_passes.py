"""Forward passes that are run once, and analysed again as often as it takes.

The first run of a test keeps its passes and the answers that normscope gave. A later run of it is
given the same passes; and whether any of its answers would be another can be told without it.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from normscope import pipeline, tracing
from normscope.assembly import PlacedRoot
from normscope.graph import Graph
from normscope.inputs import TracedModel
from normscope.inspection import Inspection


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What was made of one model."""

    roots: tuple[tuple[str, Graph], ...]
    finish: Callable[[list[PlacedRoot]], Inspection]
    answer: Inspection

    def differs(self) -> bool:
        """Tell whether the analysis fails now, or gives another answer."""
        try:
            return self.answer != self.finish([pipeline.placed_root(*root) for root in self.roots])
        except Exception:  # noqa: BLE001 (a mutant fails as it likes)
            return True


class RecordedPasses:
    """The passes of all tests, by the test and their number in it."""

    def __init__(self) -> None:
        self.analyses: defaultdict[str, list[Analysis]] = defaultdict(list)
        self.recording = True
        self._kept: dict[tuple[str, str, int], Any] = {}
        self._test = ""
        self._counts: Counter[str] = Counter()
        self._running = False
        self._placed: dict[int, tuple[PlacedRoot, str, Graph]] = {}
        tracing.trace_module = self._given_again("trace", tracing.trace_module)
        pipeline._run = self._given_again("run", pipeline._run)
        pipeline.placed_root = partial(self._place, pipeline.placed_root)
        pipeline.assemble_inspection = partial(self._assemble, pipeline.assemble_inspection)

    def begin(self, test: str) -> None:
        """Say which test runs from now on."""
        self._test = test
        self._counts.clear()
        self._placed.clear()

    def _given_again(self, what: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*positional: Any, **keywords: Any) -> Any:
            if self._running:  # a try for inputs that the model runs on
                return function(*positional, **keywords)
            self._counts[what] += 1
            key = self._test, what, self._counts[what]
            if key not in self._kept:
                self._running = True
                try:
                    self._kept[key] = function(*positional, **keywords)
                finally:
                    self._running = False
            return _fresh(self._kept[key])

        return call

    def _place(self, function: Callable[[str, Graph], PlacedRoot], path: str, graph: Graph) -> Any:
        placed = function(path, graph)
        if self.recording:
            self._placed[id(placed)] = placed, path, graph
        return placed

    def _assemble(
        self,
        function: Callable[..., Inspection],
        target: str,
        facts: Any,
        versions: Mapping[str, str],
        roots: Sequence[PlacedRoot],
        **keywords: Any,
    ) -> Inspection:
        finish = partial(function, target, facts, versions, **keywords)
        answer = finish(roots)
        if self.recording:
            graphs = tuple(self._placed[id(root)][1:] for root in roots)
            self.analyses[self._test].append(Analysis(roots=graphs, finish=finish, answer=answer))
        return answer


def _fresh(found: Any) -> Any:
    """Return what was found without what an analysis has noted in it."""
    if isinstance(found, Graph):
        return replace(found)
    if isinstance(found, tuple):
        return tuple(map(_fresh, found))
    if isinstance(found, TracedModel):
        return replace(found, roots=tuple(replace(r, graph=_fresh(r.graph)) for r in found.roots))
    return found
