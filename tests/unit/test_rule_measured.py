"""NS401 to NS406: what `stats` finds, as findings of an audit."""

from dataclasses import replace

import pytest

from golden.inspections import llama
from normscope.audit.findings import Severity
from normscope.statistics import StatisticsFinding
from specimens.measured import CODES, EVERY, finding, measured
from specimens.observed import found, observed, severities


@pytest.mark.parametrize("code", CODES)
def test_each_rule_tells_its_own_findings_of_stats(code: str) -> None:
    severity, words = CODES[code]
    (seen,) = observed(code, llama(4), statistics=EVERY)
    assert (seen.where, seen.message) == ("layers.2.input_layernorm", f"what {code} says")
    assert seen.found == words
    assert severities(code, [seen]) == [Severity(severity)]


@pytest.mark.parametrize("code", CODES)
def test_a_quiet_run_and_no_run_give_none(code: str) -> None:
    assert observed(code, llama(4), statistics=measured()) == []
    assert observed(code, llama(4)) == []


def test_the_number_of_the_block_is_no_part_of_who_a_finding_is() -> None:
    (one,) = found("NS401", llama(4), statistics=EVERY)
    assert one.where == "layers.*.input_layernorm"
    assert one.places == ("layers.2.input_layernorm",)


def test_channels_are_told_apart() -> None:
    other = StatisticsFinding(
        code="NS401", severity="warning", where="layers.2.input_layernorm", message="m", channel=9
    )
    both = found("NS401", llama(4), statistics=measured(finding("NS401"), other))
    assert len({one.identity for one in both}) == 2


def test_where_it_is_worst_is_no_part_of_who_a_finding_is() -> None:
    before, after = (
        replace(finding("NS402", first="layers.1", last="layers.3"), where=f"layers.{place}")
        for place in ("2.input_layernorm", "3.post_attention_layernorm")
    )
    (one,), (other,) = (found("NS402", llama(4), statistics=measured(it)) for it in (before, after))
    assert one.identity == other.identity
    assert (one.where, one.places) == ("layers.*", ("layers.1",))


def test_a_square_beyond_float16_is_another_finding_than_a_value() -> None:
    value = finding("NS403", first="layers.1")
    both = measured(value, replace(value, severity="warning", message="its square"))
    assert len({one.identity for one in found("NS403", llama(4), statistics=both)}) == 2
