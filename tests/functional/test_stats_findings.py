"""NS401 to NS406: each stands beside a near miss that must stay silent."""

import math
from dataclasses import replace

import pytest

from normscope.activations.findings import find_in_statistics
from normscope.inspection import ModelFacts, Role
from normscope.statistics import (
    InputFacts,
    Moments,
    NormStatistics,
    Statistics,
    Thresholds,
    Token,
)

TOKENS = 5


def moments(**changed: tuple[float, ...] | float) -> Moments:
    plain = Moments(
        mean=(0.0,) * TOKENS,
        variance=(1.0,) * TOKENS,
        peak=(3.0,) * TOKENS,
        peak_channel=(7,) * TOKENS,
    )
    return replace(plain, **changed)  # type: ignore[arg-type]


def norm(name: str, before: Moments, **changed: object) -> NormStatistics:
    plain = NormStatistics(
        name=name,
        call=0,
        role=Role.BRANCH_INPUT,
        kind="LayerNorm",
        block=name.rpartition(".")[0] or None,
        eps=1e-5,
        eps_position="inside",
        statistics_dtype="float32",
        before=before,
        after=moments(),
    )
    return replace(plain, **changed)  # type: ignore[arg-type]


def statistics_of(*norms: NormStatistics) -> Statistics:
    return Statistics(
        target="t",
        versions={},
        model=ModelFacts(
            class_name="M", model_type=None, revision=None, parameters=1, dtype="float32"
        ),
        dtype="float32",
        device="cpu",
        input=InputFacts(sequences=1, tokens=TOKENS, padding=0, special=0),
        tokens=tuple(
            Token(sequence=0, position=place, id=place, text="abcde"[place], special=False)
            for place in range(TOKENS)
        ),
        norms=norms,
    )


def found(*norms: NormStatistics, thresholds: Thresholds | None = None) -> list[tuple[str, str]]:
    findings = find_in_statistics(statistics_of(*norms), thresholds or Thresholds())
    return [(finding.code, finding.message) for finding in findings]


def codes(*norms: NormStatistics) -> list[str]:
    return [code for code, _ in found(*norms)]


def first(value: float, rest: float = 3.0) -> tuple[float, ...]:
    return (value, *[rest] * (TOKENS - 1))


def test_ordinary_values_give_no_finding() -> None:
    assert codes(norm("h.0.n", moments())) == []


# NS401


def test_a_massive_activation_is_named_with_its_blocks() -> None:
    ((code, message),) = found(
        norm("h.0.n", moments()),
        norm("h.1.n", moments(peak=first(2000.0), magnitude=0.5)),
        norm("h.2.n", moments(peak=first(5000.0), magnitude=0.5)),
        norm("h.3.n", moments()),
    )
    assert code == "NS401"
    assert message == (
        'massive activation in channel 7 at token 0 "a": up to 5,000 before h.2.n, '
        "10,000 times the median magnitude; from h.1 to h.2"
    )


def test_a_number_of_many_digits_is_told_by_its_exponent() -> None:
    ((_, message),) = [
        it
        for it in found(norm("h.0.n", moments(peak=first(1.09e30), magnitude=0.5)))
        if it[0] == "NS401"
    ]
    assert "up to 1.09e+30 before h.0.n, 2.18e+30 times" in message


def test_what_is_infinite_is_not_massive_as_well() -> None:
    assert codes(norm("h.0.n", moments(peak=first(math.inf), magnitude=0.5))) == ["NS406"]


@pytest.mark.parametrize(
    "before",
    [
        moments(peak=first(99.0), magnitude=0.01),
        moments(peak=first(2000.0), magnitude=2.5),
        moments(peak=(2000.0,) * 5, peak_channel=(1, 2, 3, 4, 5), magnitude=0.5),
    ],
    ids=["too small", "ordinary beside the rest", "in too many channels"],
)
def test_what_is_no_massive_activation(before: Moments) -> None:
    assert codes(norm("h.0.n", before)) == []


# NS402


def test_a_sink_is_named_once_at_its_worst() -> None:
    ((code, message),) = found(
        norm("h.0.n", moments(variance=(1.0, 1.0, 150.0, 1.0, 1.0))),
        norm("h.1.n", moments(variance=(1.0, 1.0, 400.0, 1.0, 1.0))),
    )
    assert code == "NS402"
    assert message == (
        'token 2 "c" stands out: variance 400 before h.1.n, 400 times the median token\'s, '
        "largest in channel 7; also before 1 other norm, from h.0 to h.1"
    )


@pytest.mark.parametrize(
    "changed",
    [{"before": moments(variance=first(99.0, 1.0))}, {"rows_per_token": 4}],
    ids=["below the threshold", "rows of heads"],
)
def test_what_is_no_sink(changed: dict[str, object]) -> None:
    standing_out = moments(variance=first(500.0, 1.0))
    assert codes(replace(norm("h.0.n", standing_out), **changed)) == []  # type: ignore[arg-type]


def test_two_tokens_have_no_median_to_stand_out_from() -> None:
    two = Moments(mean=(0.0,) * 2, variance=(900.0, 1.0), peak=(3.0,) * 2, peak_channel=(0,) * 2)
    assert codes(norm("h.0.n", two)) == []


# NS403


def test_the_first_value_that_does_not_fit_float16_is_named() -> None:
    ((code, message),) = found(
        norm("h.0.n", moments(peak=first(65504.0))),
        norm("h.1.n", moments(peak=first(70000.0))),
        norm("h.2.n", moments(peak=first(90000.0))),
    )
    assert code == "NS403"
    assert message == (
        '70,000 at token 0 "a", channel 7, before h.1.n in h.1 does not fit float16 '
        "(largest 65,504); "
        "up to 90,000 before h.2.n"
    )


def test_squares_matter_only_where_they_are_taken_in_half_precision() -> None:
    large = moments(peak=first(300.0))
    assert codes(norm("h.0.n", large)) == []
    assert codes(norm("h.0.n", large, statistics_dtype="float16")) == ["NS403"]
    small = moments(peak=first(255.0))
    assert codes(norm("h.0.n", small, statistics_dtype="float16")) == []


# NS404


def test_eps_that_weighs_is_found_at_its_worst() -> None:
    ((code, message),) = found(
        norm("h.0.n", moments(variance=first(1e-4, 1.0))),
        norm("h.1.n", moments(variance=first(1e-5, 1.0))),
    )
    assert code == "NS404"
    assert message == (
        'eps 1e-05 is 50.0% of the denominator of h.1.n at token 0 "a"; over 1% in 2 norms, '
        "from h.0 to h.1"
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"before": moments(variance=first(1e-2, 1.0))},
        {"eps_position": "outside"},
        {"kind": "RMSNorm", "before": moments(variance=(1e-6,) * 5, mean=(1.0,) * 5)},
    ],
    ids=["small", "outside the root", "a mean that counts"],
)
def test_eps_that_does_not_weigh(changed: dict[str, object]) -> None:
    tiny = moments(variance=first(1e-6, 1.0))
    assert codes(replace(norm("h.0.n", tiny), **changed)) == []  # type: ignore[arg-type]


# NS406


def test_the_first_value_that_is_not_finite_is_named() -> None:
    ((code, message),) = found(
        norm("h.0.n", moments()),
        norm("h.1.n", moments(), after=moments(peak=(3.0, math.inf, 3.0, 3.0, 3.0))),
        norm("h.2.n", moments(peak=(math.nan,) * 5)),
    )
    assert code == "NS406"
    assert message == (
        "a value that is not finite (inf) appears first after h.1.n in h.1, "
        'at token 1 "b", channel 7'
    )


def test_what_comes_out_of_a_norm_overflows_as_well() -> None:
    ((code, message),) = found(norm("h.0.n", moments(), after=moments(peak=first(1e5))))
    assert code == "NS403"
    assert message.startswith('100,000 at token 0 "a", channel 7, after h.0.n in h.0')


# NS405


@pytest.mark.parametrize(
    ("dtype", "error", "expected"),
    [
        ("float32", 4e-4, ["NS405"]),
        ("float32", 2e-4, []),
        ("float16", 2e-4, []),
        ("float16", 2e-2, ["NS405"]),
        ("bfloat16", 2e-2, []),
        ("bfloat16", 0.1, ["NS405"]),
        ("bfloat16", math.inf, ["NS405"]),
    ],
)
def test_an_output_over_the_tolerance_of_its_dtype_is_found(
    dtype: str, error: float, expected: list[str]
) -> None:
    assert codes(norm("h.0.n", moments(), error=error, output_dtype=dtype)) == expected


def test_a_wrong_output_is_named_with_the_formula_and_its_blocks() -> None:
    wrong = {"error": 0.01, "output_dtype": "float32"}
    statistics = statistics_of(
        norm("h.0.n", moments(), error=1e-7, output_dtype="float32"),
        norm("h.1.n", moments(), **wrong),
        norm("h.2.n", moments(), **{**wrong, "error": 0.02}),
    )
    (finding,) = find_in_statistics(statistics)
    assert finding.message == (
        "the output of h.2.n is not what LayerNorm with eps 1e-05 (inside) gives: "
        "relative error 0.02, over 0.0003 for float32; also off in 1 other norm"
    )
    assert (finding.first, finding.last) == ("h.1", "h.2")


def test_a_finding_says_where_it_begins_and_ends_and_at_which_token_and_channel() -> None:
    large = moments(variance=(1.0, 1.0, 500.0, 1.0, 1.0), peak=(3.0, 3.0, 7e4, 3.0, 3.0))
    large = replace(large, magnitude=0.5, peak_channel=(0, 0, 9, 0, 0))
    statistics = statistics_of(
        norm("h.0.n", moments()), norm("h.1.n", large), norm("h.2.n", large), norm("f", moments())
    )
    seen = find_in_statistics(statistics)
    assert [item.code for item in seen] == ["NS401", "NS402", "NS403"]
    for item in seen:
        assert item.token is not None
        assert (item.token.position, item.channel) == (2, 9)
        assert (item.first, item.last) == ("h.1", "h.2")


def test_thresholds_can_be_moved() -> None:
    off = norm("h.0.n", moments(), error=1e-3, output_dtype="bfloat16")
    assert [code for code, _ in found(off, thresholds=Thresholds(error=1e-4))] == ["NS405"]
    standing_out = norm("h.0.n", moments(variance=first(50.0, 1.0)))
    assert found(standing_out) == []
    assert [code for code, _ in found(standing_out, thresholds=Thresholds(sink=10.0))] == ["NS402"]
