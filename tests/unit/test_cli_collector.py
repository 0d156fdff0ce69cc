"""Full collections are put off for a while, and what is in use is set aside after a target."""

import gc

import pytest

from normscope.cli.collector import collect_now, rare_collections


def test_thresholds_are_put_back() -> None:
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold()[:2] == before[:2]
        assert gc.get_threshold()[2] > before[2]
    assert gc.get_threshold() == before


def test_thresholds_are_put_back_after_an_error() -> None:
    before = gc.get_threshold()
    with pytest.raises(ZeroDivisionError), rare_collections():
        _ = 1 // 0
    assert gc.get_threshold() == before


def test_what_only_holds_itself_is_freed() -> None:
    class Held:
        alive = 0

        def __init__(self) -> None:
            self.itself = self
            Held.alive += 1

        def __del__(self) -> None:
            Held.alive -= 1

    gc.disable()
    try:
        Held()
        assert Held.alive == 1
        collect_now()
        assert Held.alive == 0
    finally:
        gc.enable()
        gc.unfreeze()
