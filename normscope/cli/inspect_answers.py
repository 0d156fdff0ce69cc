"""Targets -> their answers, in this process or by workers, in the order that the format wants."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial

from normscope.cli.collector import collect_now, rare_collections
from normscope.cli.failures import answered
from normscope.cli.inspect_request import Request
from normscope.cli.options import Format
from normscope.cli.side_by_side import answered_side_by_side
from normscope.inspection import Answer

_Numbered = tuple[int, Answer]
_Found = Generator[_Numbered, None, None]


def answers_to(targets: Sequence[str], request: Request) -> Generator[Answer, None, None]:
    """Yield an answer for each target, each as soon as it is known and due.

    In jsonl the order is that of completion, in the other formats that of the targets. Closing the
    generator ends the workers. Raises `UsageError` for a target that means nothing.
    """
    jobs, limits = min(request.jobs, len(targets)), request.limits
    found = (
        answered_side_by_side(targets, request, jobs=jobs, limits=limits)
        if jobs > 1 or limits
        else _here(targets, request)
    )
    with closing(found):
        if request.format is Format.JSONL:
            yield from (answer for _, answer in found)
        else:
            yield from _in_order(found)


def _here(targets: Sequence[str], request: Request) -> _Found:
    for number, target in enumerate(targets):
        if number:
            collect_now()
        question = partial(request.ask, target)
        with rare_collections():
            answer = answered(target, question, quiet=request.quiet, verbose=request.verbose)
        yield number, answer


def _in_order(found: Iterable[_Numbered]) -> Iterator[Answer]:
    early: dict[int, Answer] = {}
    due = 0
    for number, answer in found:
        early[number] = answer
        while due in early:
            yield early.pop(due)
            due += 1
