"""Room for moments: apart from each other, the same in every pass, and copied when it is read."""

import gc
import multiprocessing

import numpy as np
import pytest

from normscope.activations.shelf import BYTES_A_ROW, Room, Shelf


def filled(shelf: Shelf, rows: int, value: float) -> Room:
    room = Room(shelf, shelf.take(rows), rows)
    room.words()[:] = value
    return room


def test_rooms_of_any_size_lie_apart() -> None:
    shelf = Shelf()
    sizes = [1, 700, 40_000, 3, 100_000, 20_000, 20_000]
    rooms = [filled(shelf, rows, value) for value, rows in enumerate(sizes)]
    for value, (room, rows) in enumerate(zip(rooms, sizes, strict=True)):
        assert np.array_equal(room.words(), np.full((4, rows), value))


def test_the_next_pass_gets_the_same_memory() -> None:
    shelf = Shelf()
    sizes = [10, 50_000, 10]
    first = [shelf.take(rows) for rows in sizes]
    shelf.clear()
    assert [shelf.take(rows) for rows in sizes] == first


def test_a_piece_that_is_too_small_is_passed_over() -> None:
    shelf = Shelf()
    shelf.take(10)
    shelf.clear()
    large, small = filled(shelf, 200_000, 1.0), filled(shelf, 10, 2.0)
    assert np.array_equal(large.words(), np.full((4, 200_000), 1.0))
    assert np.array_equal(small.words(), np.full((4, 10), 2.0))


def test_longer_and_longer_passes_keep_no_more_than_two_need() -> None:
    shelf = Shelf()
    for rows in range(40_000, 60_000, 1000):
        shelf.clear()
        for _ in range(3):
            shelf.take(rows)
    held = sum(piece.end - piece.start for piece in shelf._pieces)
    assert held <= 2 * 3 * 60_000 * BYTES_A_ROW


def test_what_lies_there_outlives_the_shelf() -> None:
    words = filled(Shelf(), 100_000, 3.0).words()
    gc.collect()
    assert np.array_equal(words, np.full((4, 100_000), 3.0))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # torch has threads
def test_a_forked_process_has_its_own() -> None:
    room = filled(Shelf(), 10, 3.0)
    child = multiprocessing.get_context("fork").Process(target=room.words().fill, args=(5.0,))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert np.array_equal(room.words(), np.full((4, 10), 3.0))


def test_columns_stay_when_their_room_is_given_to_others() -> None:
    shelf = Shelf()
    mean, _, _, place = filled(shelf, 5, 2.0).columns()
    shelf.clear()
    filled(shelf, 5, 7.0)
    assert mean.tolist() == [2.0] * 5
    assert place.dtype == np.int64
