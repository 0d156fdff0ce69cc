"""Rungs -> lines of characters: the stream from left to right, its branches below it."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from normscope.render.rungs import Rung

_TO_ASCII = str.maketrans(
    {"─": "-", "┬": "+", "├": "+", "└": "`", "┤": "+", "┘": "'", "▶": ">"}
    | {"·": "*", "×": "x", "γ": "gamma", "σ": "sigma"}
)
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def draw(rungs: Sequence[Rung], *, width: int, ascii_only: bool = False) -> list[str]:
    """Return the drawing of a block, not wider than `width` unless one rung alone is.

    What does not fit goes on in a further row: the value between the rows has a name. With
    `ascii_only` nothing beyond ASCII is drawn.
    """
    pieces = [_piece(rung, ascii_only) for rung in rungs]
    rows = list(_rows(pieces, width))
    names = [_value(number, ascii_only) for number in range(len(rows))]
    margin = max((cell_len(name) for name in names), default=0)
    lines = [
        line.rstrip()
        for number, row in enumerate(rows)
        for line in _joined(row, names[number].ljust(margin), "".join(names[number + 1 :][:1]))
    ]
    return [line.translate(_TO_ASCII) for line in lines] if ascii_only else lines


def _value(number: int, ascii_only: bool) -> str:
    """Return the name of the stream where a row begins: x, x₁, x₂."""
    if not number:
        return "x"
    return f"x{number}" if ascii_only else f"x{str(number).translate(_SUBSCRIPTS)}"


_Piece = list[str]
"""Lines of one width; the first is the stream's."""


def _rows(pieces: Sequence[_Piece], width: int) -> Iterator[list[_Piece]]:
    if _length(pieces) <= width - len("x ──▶"):
        yield list(pieces)
        return
    row: list[_Piece] = []
    for piece in pieces:
        if row and _length((*row, piece)) > width - len("x₁ ──▶ x₂"):
            yield row
            row = []
        row.append(piece)
    yield row


def _length(row: Sequence[_Piece]) -> int:
    return sum(cell_len(piece[0]) for piece in row) + len(row) - 1


def _joined(row: Sequence[_Piece], start: str, end: str) -> Iterator[str]:
    yield f"{start} ─{'─'.join(piece[0] for piece in row)}─▶ {end}"
    blank = " " * (cell_len(start) + 2)
    for depth in range(1, max(len(piece) for piece in row)):
        yield blank + " ".join(
            piece[depth] if depth < len(piece) else " " * cell_len(piece[0]) for piece in row
        )


def _piece(rung: Rung, ascii_only: bool) -> _Piece:
    shared, *branches = (_chain(boxes, ascii_only) for boxes in (rung.shared, *rung.branches))
    after = f"─{_chain(rung.after, ascii_only)} " if rung.after else ""
    if rung.skip is None and len(branches) == 1:
        return [f"{branches[0]} {after}"]
    skip = _chain(rung.skip or (), ascii_only)
    fork = f"{shared} ─┬" if shared else ""
    bodies = [f"─{branch} ──" for branch in branches]
    beside = cell_len(f"─{fork}") if fork else 0
    # The skip's line is shorter by one: the addition stands over the end of the branches.
    room = max(cell_len(skip) + 4, *(beside + cell_len(body) for body in bodies))
    stream = f"┬{_filled(f'─{skip} ─' if skip else '', room - 1)}({rung.sign or '+'}){after}"
    below = list(_below_fork(fork, bodies, room) if fork else _below(bodies, room))
    return [stream, *(_filled(line, cell_len(stream), " ") for line in below)]


def _below(bodies: Sequence[str], room: int) -> Iterator[str]:
    for number, body in enumerate(bodies, start=1):
        left, right = ("└", "┘") if number == len(bodies) else ("├", "┤")
        yield f"{left}{_filled(body, room)}{right}"


def _below_fork(fork: str, bodies: Sequence[str], room: int) -> Iterator[str]:
    first, *rest = _below(bodies, room - cell_len(f"─{fork}"))
    yield f"└─{fork}{first[1:]}"
    for line in rest:
        yield " " * cell_len(f"─{fork}") + line


def _chain(boxes: Sequence[str], ascii_only: bool) -> str:
    """Return ` RMSNorm ─ attention`; "" for no boxes."""
    shown = (_ascii(box) for box in boxes) if ascii_only else boxes
    return "".join(f" {box} ─" for box in shown)[:-2]


def _ascii(text: str) -> str:
    return text.translate(_TO_ASCII).encode("ascii", "backslashreplace").decode()


def _filled(text: str, width: int, character: str = "─") -> str:
    return text + character * (width - cell_len(text))
