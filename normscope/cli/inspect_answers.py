"""Targets -> their answers, in this process or by workers, in the order that the format wants."""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial

from normscope.cli import inspect_request
from normscope.cli.collector import collect_now, rare_collections
from normscope.cli.failures import answered
from normscope.cli.inspect_request import Request
from normscope.cli.options import Format
from normscope.cli.workers import Workers
from normscope.inspection import Answer

_Numbered = tuple[int, Answer]
_Found = Generator[_Numbered, None, None]


def answers_to(targets: Sequence[str], request: Request) -> Generator[Answer, None, None]:
    """Yield an answer for each target, each as soon as it is known and due.

    In jsonl the order is that of completion, in the other formats that of the targets. Closing the
    generator ends the workers. Raises `UsageError` for a target that means nothing.
    """
    jobs = min(request.jobs, len(targets))
    found = _by_workers(targets, request, jobs) if jobs > 1 else _here(targets, request)
    with closing(found):
        if request.format is Format.JSONL:
            yield from (answer for _, answer in found)
        else:
            yield from _in_order(found)


def _here(targets: Sequence[str], request: Request) -> _Found:
    for number, target in enumerate(targets):
        if number:
            collect_now()
        question = partial(inspect_request.ask, target, request)
        with rare_collections():
            answer = answered(target, question, quiet=request.quiet, verbose=request.views.verbose)
        yield number, answer


def _by_workers(targets: Sequence[str], request: Request, jobs: int) -> _Found:
    with Workers(request, jobs) as workers:
        for number, target in enumerate(targets):
            question = partial(inspect_request.recall, target, request)
            known = answered(target, question, quiet=request.quiet, verbose=request.views.verbose)
            if known is not None:
                yield number, known
                continue
            while workers.full:
                yield from workers.next_answers()
            workers.give(number, target)
        while workers.busy:
            yield from workers.next_answers()


def _in_order(found: Iterable[_Numbered]) -> Iterator[Answer]:
    early: dict[int, Answer] = {}
    due = 0
    for number, answer in found:
        early[number] = answer
        while due in early:
            yield early.pop(due)
            due += 1
