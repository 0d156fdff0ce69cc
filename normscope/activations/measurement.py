"""Readings of one forward pass after another -> Statistics, in the order of the input."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import nn

from normscope.activations.chunks import Chunk, NormRows, Reporting
from normscope.activations.findings import find_in_statistics
from normscope.activations.formula import tensors_of
from normscope.activations.gather import Gathered
from normscope.activations.norm_entries import NormEntries
from normscope.activations.normalized import with_normalized, with_scaled
from normscope.activations.plan import Plan
from normscope.activations.readings import Readings
from normscope.activations.streams import Inputs, token_streams
from normscope.activations.subject import Subject, device_of
from normscope.activations.tokens import TokenList
from normscope.statistics import NormStatistics, Statistics, Token


@dataclass(slots=True, kw_only=True)
class Measurement:
    """One measurement while it goes on."""

    module: nn.Module
    plan: Plan
    subject: Subject
    tokens: TokenList
    reporting: Reporting = field(default_factory=Reporting)
    entries: list[NormEntries] = field(init=False)
    gathered: Gathered = field(init=False)

    def __post_init__(self) -> None:
        self.entries = [NormEntries(norm) for norm in self.plan.norms]
        self.gathered = Gathered(self.reporting)

    def take(self, readings: Readings, inputs: Inputs) -> None:
        """Take what the probes read in a forward pass on `inputs`.

        Raises `UsageError` where the run grows larger than its reporting allows.
        """
        used = {norm.rows.stream for norm in self.plan.norms if norm.rows.layout is not None}
        streams = [item for item in token_streams(self.module, inputs) if item.name in used]
        sequences = streams[0].extent.batch if streams else _first_size(inputs)
        before = self.tokens.counted
        counted = self.tokens.add(streams, sequences, inputs.numbers)
        for norm, entries in zip(self.plan.norms, self.entries, strict=True):
            entries.add(readings, counted.get(norm.rows.stream))
        if self.reporting.follower is not None:
            self.reporting.follower.measured(sequences, self.tokens.counted - before)
        if inputs.completes:
            self._pass_on()

    def _pass_on(self) -> None:
        """Let go of the rows of whole sequences."""
        tokens, orders = self.tokens.taken()
        rows = tuple(entries.taken(orders) for entries in self.entries)
        if tokens or any(rows):
            self.gathered.add(self._chunk(rows, tokens))

    def _chunk(self, rows: tuple[NormRows | None, ...], tokens: tuple[Token, ...]) -> Chunk:
        described = [entries.described() for entries in self.entries]
        if self.reporting.sink is not None:
            rows = self._scaled(rows, described)
        return Chunk(
            subject=self.subject,
            norms=(*described, *self.plan.idle),
            rows=(*rows, *(None for _ in self.plan.idle)),
            tokens=tokens,
        )

    def _scaled(
        self, rows: Sequence[NormRows | None], described: Sequence[NormStatistics]
    ) -> tuple[NormRows | None, ...]:
        """Only what saves the rows asks for this; of what is held it follows in the end."""
        tensors = tensors_of(self.module)
        columns = zip(rows, described, self.plan.norms, strict=True)
        return tuple(
            None if item is None else with_scaled(item, norm.row_length, plan, tensors)
            for item, norm, plan in columns
        )

    def finish(self) -> None:
        """Hand over the rows that grew until the end."""
        merged = tuple(entries.merged() for entries in self.entries)
        if self.reporting.sink is not None and any(merged):
            self.reporting.sink.write(self._chunk(merged, ()))

    def statistics(self) -> Statistics:
        """Return all that was measured so far, with its findings."""
        self._pass_on()
        norms = self.gathered.as_statistics(
            [entries.described() for entries in self.entries],
            [entries.magnitudes() for entries in self.entries],
            [entries.merged() for entries in self.entries],
        )
        tensors = tensors_of(self.module)
        norms = tuple(
            with_normalized(norm, plan, tensors)
            for norm, plan in zip(norms, self.plan.norms, strict=True)
        )
        statistics = Statistics(
            target=self.subject.target,
            versions=self.subject.versions,
            model=self.subject.model,
            dtype=self.subject.model.dtype,
            device=device_of(self.module),
            input=self.tokens.facts(),
            tokens=self.gathered.tokens(),
            norms=(*norms, *self.plan.idle),
            left_out=self.gathered.left_out(),
        )
        return replace(statistics, findings=find_in_statistics(statistics))


def _first_size(inputs: Inputs) -> int:
    values = (*inputs.positional, *inputs.keywords.values())
    sizes = (len(value) for value in values if isinstance(value, torch.Tensor) and value.dim())
    return next(sizes, 1)
