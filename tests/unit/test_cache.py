"""Which answers are kept, under which key, and what a damaged folder does: nothing."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import normscope.cache.key as key_module
from golden.inspections import bert, llama
from normscope.cache import cache_key, keep_inspection, recall_inspection
from normscope.cache.code import code_digest, tree_digest
from normscope.cache.steady import code_stays
from normscope.checkpoint import Checkpoint, CheckpointKind
from normscope.graph import Graph, Node, Source

CONFIG = {"model_type": "llama", "hidden_size": 64}
CHECKPOINT = Checkpoint(
    target="./here", kind=CheckpointKind.DIRECTORY, model_type="llama", config=CONFIG
)


def key(checkpoint: Checkpoint = CHECKPOINT, **changes: object) -> str | None:
    options = {"dtype": None, "trust_remote_code": False, **changes}
    return cache_key(checkpoint, **options)  # type: ignore[arg-type]


@pytest.fixture
def folder() -> Path:
    return Path(os.environ["XDG_CACHE_HOME"]) / "normscope"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph that was run by one file."""
    file = tmp_path / "modeling.py"
    file.write_text("x + 1")
    source = Source(file=str(file), line=1, function="forward")
    return Graph(nodes=(Node(index=0, operation="add", source=source),), modules={})


class TestKey:
    def test_the_place_of_a_config_takes_no_part(self) -> None:
        assert key(replace(CHECKPOINT, target="./there", directory=Path("there"))) == key()
        reordered = dict(reversed(CONFIG.items()))
        assert key(replace(CHECKPOINT, config=reordered)) == key()

    @pytest.mark.parametrize(
        "other",
        [
            replace(CHECKPOINT, config={**CONFIG, "hidden_size": 65}),
            replace(CHECKPOINT, config={**CONFIG, "architectures": ["LlamaForCausalLM"]}),
            replace(CHECKPOINT, kind=CheckpointKind.TYPE, config=None),
            replace(CHECKPOINT, kind=CheckpointKind.TYPE, config=None, model_type="bert"),
        ],
    )
    def test_the_content_does(self, other: Checkpoint) -> None:
        assert key(other) != key()

    def test_the_dtype_does(self) -> None:
        assert key(dtype="float16") != key()

    @pytest.mark.parametrize("package", ["normscope", "torch", "transformers"])
    def test_the_versions_do(self, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
        before = key()
        monkeypatch.setattr(key_module, "versions", lambda: {package: "99"})
        assert key() != before

    def test_python_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = key()
        monkeypatch.setattr(sys, "version", "9.9")
        assert key() != before

    def test_an_installed_package_does(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = key()
        monkeypatch.syspath_prepend(str(tmp_path))
        assert key() == before
        (tmp_path / "timm-1.0.dist-info").mkdir()
        assert key() != before

    def test_this_programs_own_code_does(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "norms").mkdir()
        (tmp_path / "norms" / "find.py").write_text("before")
        monkeypatch.setattr(key_module, "_PACKAGE", tmp_path)
        before = key()
        (tmp_path / "norms" / "find.py").write_text("changed")
        assert key() != before

    def test_the_users_own_code_is_not_kept(self) -> None:
        own = Checkpoint(target="py:a:b", kind=CheckpointKind.PYTHON, factory="a:b")
        assert key(own) is None

    def test_remote_code_is_not_kept_where_it_is_run(self) -> None:
        remote = replace(CHECKPOINT, config={**CONFIG, "auto_map": {"AutoModel": "m.M"}})
        assert key(remote, trust_remote_code=True) is None
        assert key(remote) is not None
        assert key(trust_remote_code=True) == key()


class TestSteadyCode:
    def test_a_run_looks_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(tmp_path))
        with code_stays():
            before = key()
            (tmp_path / "timm-1.0.dist-info").mkdir()
            with code_stays():
                assert key() == before
            assert key() == before
        assert key() != before

    def test_what_was_seen_is_forgotten_after_an_error(self, tmp_path: Path) -> None:
        file = tmp_path / "a.py"
        file.write_text("a")
        before = code_digest([tmp_path])
        with pytest.raises(FileNotFoundError), code_stays():
            code_digest([tmp_path, tmp_path / "gone"])
        file.write_text("aa")
        assert code_digest([tmp_path]) != before


class TestEntries:
    def test_an_answer_comes_back_whole(self, folder: Path, graph: Graph) -> None:
        assert recall_inspection("k") is None
        keep_inspection("k", bert(), [graph])
        assert recall_inspection("k") == bert()
        assert recall_inspection("other") is None
        assert [path.name for path in folder.iterdir()] == ["k.json"]
        assert folder.stat().st_mode & 0o077 == 0

    def test_an_answer_is_forgotten_with_the_code_that_it_is_of(
        self, tmp_path: Path, graph: Graph
    ) -> None:
        keep_inspection("k", bert(), [graph])
        (tmp_path / "modeling.py").write_text("x + N(x)")
        assert recall_inspection("k") is None

    def test_a_file_beside_it_counts_as_well(self, tmp_path: Path, graph: Graph) -> None:
        keep_inspection("k", bert(), [graph])
        (tmp_path / "notes.txt").write_text("")
        assert recall_inspection("k") == bert()
        (tmp_path / "configuration.py").write_text("")
        assert recall_inspection("k") is None

    @pytest.mark.parametrize(
        "content", [b"", b"{", b"\xff", b"[]", b"null", b"{}", b"[" * 100_000, b"no"]
    )
    def test_a_damaged_entry_is_no_entry_and_is_replaced(
        self, folder: Path, graph: Graph, content: bytes
    ) -> None:
        keep_inspection("k", bert(), [graph])
        (folder / "k.json").write_bytes(content)
        assert recall_inspection("k") is None
        keep_inspection("k", bert(), [graph])
        assert recall_inspection("k") == bert()

    def test_an_entry_of_another_schema_is_no_entry(self, folder: Path, graph: Graph) -> None:
        keep_inspection("k", bert(), [graph])
        entry = json.loads((folder / "k.json").read_text())
        entry["stamp"]["schema"] = "normscope.cache/0"
        (folder / "k.json").write_text(json.dumps(entry))
        assert recall_inspection("k") is None

    def test_a_folder_that_cannot_be_is_no_error(
        self, tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").write_text("in the way")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        keep_inspection("k", bert(), [graph])
        assert recall_inspection("k") is None

    def test_a_user_without_a_home_has_no_cache(
        self, graph: Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_home() -> Path:
            raise RuntimeError("no home")

        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(Path, "home", no_home)
        keep_inspection("k", bert(), [graph])
        assert recall_inspection("k") is None

    @pytest.mark.parametrize("named", ["", "relative/folder"])
    def test_without_an_absolute_folder_it_lies_in_home(
        self, tmp_path: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch, named: str
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", named)
        monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
        keep_inspection("k", bert(), [graph])
        assert (tmp_path / "home" / ".cache" / "normscope" / "k.json").is_file()

    def test_writers_at_once_leave_one_whole_answer(self, folder: Path, graph: Graph) -> None:
        def write_and_read(turn: int) -> bool:
            keep_inspection("k", bert() if turn % 2 else llama(), [graph])
            return recall_inspection("k") in (bert(), llama())

        with ThreadPoolExecutor(8) as writers:
            assert all(writers.map(write_and_read, range(40)))
        assert [path.name for path in folder.iterdir()] == ["k.json"]


class TestCode:
    def test_a_tree_counts_what_lies_below(self, tmp_path: Path) -> None:
        (tmp_path / "models" / "new").mkdir(parents=True)
        before = tree_digest(tmp_path)
        (tmp_path / "models" / "new" / "modeling.py").write_text("x")
        assert tree_digest(tmp_path) != before

    def test_the_digest_changes_with_a_files_time(self, tmp_path: Path) -> None:
        file = tmp_path / "a.py"
        file.write_text("a")
        before = code_digest([tmp_path])
        assert code_digest([tmp_path]) == before
        os.utime(file, ns=(1, 1))
        assert code_digest([tmp_path]) != before

    def test_a_folder_that_is_gone_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            code_digest([tmp_path / "gone"])


class TestHostileFolder:
    def test_an_entry_that_is_a_pipe_is_not_waited_for(self, folder: Path, graph: Graph) -> None:
        folder.mkdir(parents=True)
        os.mkfifo(folder / "k.json")
        assert recall_inspection("k") is None
        keep_inspection("k", bert(), [graph])
        assert recall_inspection("k") == bert()

    def test_an_entry_without_an_end_is_not_read(
        self, folder: Path, graph: Graph, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        keep_inspection("k", bert(), [graph])
        monkeypatch.setattr("normscope.cache.entries._LARGEST", 100)
        assert recall_inspection("k") is None

    def test_every_beginning_of_an_entry_is_no_entry(self, folder: Path, graph: Graph) -> None:
        keep_inspection("k", llama(1), [graph])
        whole = (folder / "k.json").read_bytes()
        for length in range(0, len(whole), 97):
            (folder / "k.json").write_bytes(whole[:length])
            assert recall_inspection("k") is None

    def test_an_entry_with_any_byte_changed_is_none_or_well_formed(
        self, folder: Path, graph: Graph
    ) -> None:
        keep_inspection("k", llama(1), [graph])
        whole = (folder / "k.json").read_bytes()
        for place in range(0, len(whole), 23):
            (folder / "k.json").write_bytes(whole[:place] + b"\x81" + whole[place + 1 :])
            assert recall_inspection("k") is None

    def test_processes_at_once_leave_one_whole_answer(self, folder: Path, graph: Graph) -> None:
        children = []
        for number in range(4):
            child = os.fork()
            if child == 0:
                try:
                    for turn in range(20):
                        keep_inspection("k", bert() if (turn + number) % 2 else llama(), [graph])
                finally:
                    os._exit(0)
            children.append(child)
        while children:
            assert recall_inspection("k") in (None, bert(), llama())
            done, _ = os.waitpid(-1, os.WNOHANG)
            children = [child for child in children if child != done]
        assert recall_inspection("k") in (bert(), llama())
        assert [path.name for path in folder.iterdir()] == ["k.json"]

    def test_a_clock_that_went_back_changes_no_answer(
        self, folder: Path, graph: Graph, tmp_path: Path
    ) -> None:
        keep_inspection("k", bert(), [graph])
        os.utime(folder / "k.json", (1, 1))
        assert recall_inspection("k") == bert()
        os.utime(tmp_path / "modeling.py", (2**32, 2**32))  # another time, also a later one
        assert recall_inspection("k") is None
