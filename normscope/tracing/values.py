"""Which graph node holds the value of a live tensor, through views and in-place writes."""

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

import torch


@dataclass(slots=True)
class _Storage:
    """What has been written into one storage, and the tensors seen on it."""

    members: list[weakref.ref[torch.Tensor]] = field(default_factory=list)
    writes: list[tuple[int, int]] = field(default_factory=list)
    """(node that was written, number of elements written), in order."""

    def alive(self) -> bool:
        return any(member() is not None for member in self.members)


@dataclass(slots=True)
class _Entry:
    tensor: weakref.ref[torch.Tensor]
    node: int
    storage: _Storage
    writes_seen: int


class ValueTable:
    """Maps live tensors to node indices.

    A tensor that shares its storage with one that was written in place is brought up to date when
    it is next read: `on_stale` is asked for a node that joins the old value and the writes.
    """

    def __init__(self, on_stale: Callable[[torch.Tensor, int, tuple[int, ...], bool], int]) -> None:
        self._on_stale = on_stale
        self._entries: dict[int, _Entry] = {}
        self._storages: dict[int, _Storage] = {}

    def bind(self, tensor: torch.Tensor, node: int) -> None:
        """Record that `tensor` now holds the value of `node`."""
        storage = self._storage_of(tensor)
        reference = weakref.ref(tensor)
        storage.members.append(reference)
        self._entries[id(tensor)] = _Entry(reference, node, storage, len(storage.writes))

    def write(self, tensor: torch.Tensor, node: int) -> None:
        """Record that `node` was written in place into `tensor`, and so into its storage."""
        storage = self._storage_of(tensor)
        storage.writes.append((node, tensor.numel()))
        self.bind(tensor, node)

    def find(self, tensor: torch.Tensor) -> int | None:
        """Return the node that `tensor` holds, or None for a tensor never seen."""
        entry = self._entries.get(id(tensor))
        if entry is None or entry.tensor() is not tensor:
            return self._find_by_storage(tensor)
        if entry.writes_seen < len(entry.storage.writes):
            self._refresh(tensor, entry)
        return entry.node

    def _refresh(self, tensor: torch.Tensor, entry: _Entry) -> None:
        pending = entry.storage.writes[entry.writes_seen :]
        nodes = tuple(dict.fromkeys(node for node, _ in pending))
        covers = pending[-1][1] >= tensor.numel()
        entry.writes_seen = len(entry.storage.writes)
        entry.node = self._on_stale(tensor, entry.node, nodes[-1:] if covers else nodes, covers)

    def _find_by_storage(self, tensor: torch.Tensor) -> int | None:
        """A detached twin (`.data`) is a new object on a storage that is known."""
        storage = self._storages.get(_storage_key(tensor))
        if storage is None:
            return None
        for reference in reversed(storage.members):
            member = reference()
            if member is not None and member.shape == tensor.shape:
                return self.find(member) if member is not tensor else None
        return None

    def _storage_of(self, tensor: torch.Tensor) -> _Storage:
        key = _storage_key(tensor)
        storage = self._storages.get(key)
        # The address of a freed storage may be given to a new one.
        if storage is None or not storage.alive():
            storage = self._storages[key] = _Storage()
        return storage


def _storage_key(tensor: torch.Tensor) -> int:
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):  # sparse and other layouts have no storage
        return -id(tensor)
