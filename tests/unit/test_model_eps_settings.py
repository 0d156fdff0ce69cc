"""What a config says of eps, in itself and in its parts."""

from types import SimpleNamespace

import pytest

from normscope.model.eps_settings import eps_settings


def settings(**values: object) -> tuple[tuple[str, float | None], ...]:
    return eps_settings(SimpleNamespace(to_dict=lambda: values))


@pytest.mark.parametrize(
    "key",
    [
        "eps",
        "layer_norm_eps",
        "rms_norm_eps",
        "layer_norm_epsilon",
        "norm_epsilon",
        "LAYER_NORM_EPS",
    ],
)
def test_each_spelling_is_read(key: str) -> None:
    assert settings(**{key: 1e-5}) == ((key, 1e-5),)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_steps", 3),
        ("use_eps", True),
        ("eps", None),
        ("eps", "1e-5"),
        ("deepspeed", 1.0),
        ("epsilons", [1e-5]),
    ],
)
def test_what_is_no_eps_is_not(key: str, value: object) -> None:
    assert settings(**{key: value}) == ()


def test_a_whole_number_is_one_too() -> None:
    assert settings(eps=0) == (("eps", 0.0),)


def test_parts_have_their_own_and_those_without_any_are_named() -> None:
    found = settings(
        norm_eps=1e-6,
        text_config={"model_type": "t", "hidden_size": 3},
        vision_config={"model_type": "v", "layer_norm_eps": 1e-5},
        outer={"model_type": "o", "inner": {"model_type": "i", "eps": 1e-3}},
        rope_scaling={"factor": 2.0},
    )
    assert found == (
        ("norm_eps", 1e-6),
        ("text_config", None),
        ("vision_config.layer_norm_eps", 1e-5),
        ("outer.inner.eps", 1e-3),
    )


def test_what_is_no_config_says_nothing() -> None:
    assert eps_settings(None) == ()
    assert eps_settings(SimpleNamespace(eps=1e-5)) == ()
