"""Planned audit + destinations -> no file that it writes is one that it reads, or writes twice."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from normscope.checkpoint import CONFIG_NAME
from normscope.cli.audit_formats import Destination
from normscope.cli.audit_plan import Plan
from normscope.cli.output import check_distinct
from normscope.cli.targets import files_named


def check_written(plan: Plan, places: Sequence[Destination]) -> None:
    """Raise `UsageError` where a report would be written over a policy, a record or a target."""
    files = plan.files
    records = {
        "--lock": files.lock if files.update_lock else None,
        "--baseline": files.baseline if files.update_baseline else None,
    }
    if not any(place.path for place in places) and not any(records.values()):
        return
    read = tuple(_read(plan))
    check_distinct(records, read)
    for place in places:
        check_distinct({**records, f"-f {place.format.value}": place.path}, read)


def _read(plan: Plan) -> Iterator[Path]:
    if plan.policy is not None:
        yield Path(plan.policy.file)
    files = plan.files
    for path, update in (
        (files.lock, files.update_lock),
        (files.baseline, files.update_baseline),
    ):
        if path is not None and not update:
            yield path
    opened = [each.opened for each in plan.every]
    yield from files_named([*opened, *(f"{name}/{CONFIG_NAME}" for name in opened)])
