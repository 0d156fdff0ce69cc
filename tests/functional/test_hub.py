"""Repositories of the Hub, over real HTTP from a small server on loopback."""

import json
import shutil
import struct

import huggingface_hub
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from normscope.cli.app import app
from normscope.weights import hub_repository
from servers.hub import COMMIT, Hub, serving

SHAPE = {
    "vocab_size": 1000,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 6,
    "num_attention_heads": 2,
}
NORM_BYTES = 13 * 64 * 4
ONE = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
SECRET = "hf_secretsecretsecret"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sharded")
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**SHAPE))
    model.save_pretrained(folder, max_shard_size="400KB")
    return folder


@pytest.fixture
def hub(saved, tmp_path, monkeypatch):
    constants = huggingface_hub.constants
    with serving(Hub(folders={"org/name": saved})) as running:
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", _template(running.url))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.setattr(constants, "HF_STORED_TOKENS_PATH", str(tmp_path / "no-tokens"))
        monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.3)
        monkeypatch.setattr(constants, "HF_HUB_ETAG_TIMEOUT", 2)
        monkeypatch.setattr("normscope.hub._RETRIES", 0)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        yield running


def _template(url):
    return url + "/{repo_id}/resolve/{revision}/{filename}"


@pytest.fixture
def token(hub, monkeypatch):
    hub.tokens.add(SECRET)
    monkeypatch.setenv("HF_TOKEN", SECRET)
    return SECRET


def _header_size(path):
    return 8 + int.from_bytes(path.read_bytes()[:8], "little")


def run(*arguments):
    return CliRunner().invoke(app, ["inspect", *arguments, "-f", "json"])


def failure(*arguments):
    result = run(*arguments)
    assert result.exit_code == 3
    assert SECRET not in result.output
    return json.loads(result.stdout)


class TestWhatIsFetched:
    def test_structure_needs_the_config_alone(self, hub):
        found = json.loads(run("org/name").stdout)
        assert (found["weights"], len(found["blocks"])) == ("none", 6)
        assert {r.path.rpartition("/")[2] for r in hub.log} == {"config.json"}

    def test_headers_take_one_request_a_shard(self, hub, saved):
        stored = json.loads(run("org/name", "--weights", "headers").stdout)["stored"]
        shards = sorted(path.name for path in saved.glob("*.safetensors"))
        assert stored["files"] == len(shards) > 2
        assert stored["file_bytes"] == sum((saved / name).stat().st_size for name in shards)
        for name in shards:
            (request,) = hub.asked(name)
            assert request.range == "bytes=0-32767"
        assert {item["problem"] for item in stored["parameters"]} == {None}

    def test_values_take_the_norms_own_bytes(self, hub, saved, monkeypatch):
        monkeypatch.setattr(hub_repository, "_FIRST", 8)
        monkeypatch.setattr(hub_repository, "_GAP", -1)
        here = json.loads(run(str(saved), "--weights", "norms").stdout)["stored"]
        there = json.loads(run("org/name", "--weights", "norms").stdout)["stored"]
        assert there["parameters"] == here["parameters"]
        shards = [path.name for path in saved.glob("*.safetensors")]
        headers = sum(_header_size(saved / name) for name in shards)
        sent = sum(request.sent for name in shards for request in hub.asked(name))
        assert sent == headers + NORM_BYTES == there["bytes_read"] < there["file_bytes"] / 10

    def test_norms_that_lie_close_together_come_by_one_request(self, hub, saved):
        run("org/name", "--weights", "headers")
        headers = len(hub.log)
        run("org/name", "--weights", "norms")
        ranges = [request for request in hub.log[headers:] if request.range]
        assert len(ranges) - len(list(saved.glob("*.safetensors"))) < 13

    def test_the_second_time_nothing_is_asked(self, hub):
        run("org/name")
        hub.log.clear()
        assert json.loads(run("org/name").stdout)["blocks"]
        assert hub.log == []

    @pytest.mark.parametrize("target", ["org/name", "org/name@main"])
    def test_the_revision_is_the_commit(self, hub, target):
        for cache in ((), ("--no-cache",)):
            assert json.loads(run(target, *cache).stdout)["model"]["revision"] == COMMIT
        shown = CliRunner().invoke(app, ["inspect", target]).stdout.splitlines()[0]
        assert COMMIT[:12] in shown
        assert COMMIT not in shown

    def test_what_is_no_repository_has_no_revision(self, saved):
        assert json.loads(run(str(saved)).stdout)["model"]["revision"] is None

    def test_ranges_are_of_the_commit_that_the_config_is_of(self, hub):
        run("org/name", "--weights", "headers")
        ranges = [r for r in hub.log if r.range is not None]
        assert ranges
        assert all(f"/resolve/{COMMIT}/" in r.path for r in ranges)

    def test_repositories_of_one_config_share_no_answer_about_weights(self, hub, saved, tmp_path):
        shutil.copytree(saved, tmp_path / "other")
        for shard in (tmp_path / "other").glob("*.safetensors"):
            save_file({name: value + 1 for name, value in load_file(shard).items()}, shard)
        hub.folders["org/other"] = tmp_path / "other"
        first, second = (
            json.loads(run(name, "--weights", "norms").stdout)["stored"]["parameters"]
            for name in ("org/name", "org/other")
        )
        assert first != second

    def test_a_redirection_is_followed(self, hub):
        hub.elsewhere = True
        stored = json.loads(run("org/name", "--weights", "norms").stdout)["stored"]
        assert all(item["values"] for item in stored["parameters"])
        assert any(r.path.startswith("/elsewhere") and r.range for r in hub.log)

    def test_a_single_file_without_an_index(self, hub, tmp_path):
        config = transformers.BertConfig(**SHAPE)
        transformers.BertModel(config).save_pretrained(tmp_path / "bert")
        hub.folders["org/bert"] = tmp_path / "bert"
        stored = json.loads(run("org/bert", "--weights", "norms").stdout)["stored"]
        assert stored["files"] == 1
        assert all(item["values"] for item in stored["parameters"])

    def test_pickled_weights_are_not_fetched(self, hub, saved, tmp_path):
        shutil.copy(saved / "config.json", tmp_path / "config.json")
        (tmp_path / "pytorch_model.bin").write_bytes(b"x" * 1000)
        hub.folders["org/pickled"] = tmp_path
        found = json.loads(run("org/pickled", "--weights", "norms").stdout)
        assert found["weights"] == "none"
        assert hub.asked("pytorch_model.bin") == []

    def test_two_repositories_are_compared_by_their_norms_alone(self, hub, saved):
        result = CliRunner().invoke(app, ["diff", "org/name", str(saved), "-f", "json"])
        assert result.exit_code == 0
        assert len(json.loads(result.stdout)["values"]) == 13


class TestRefusals:
    def test_missing_without_a_token(self, hub):
        found = failure("org/nowhere")
        assert found["kind"] == "not_found"
        assert "no public repository" in found["message"]
        assert "hf auth login" in found["hint"]

    def test_missing_with_a_token(self, hub, token):
        found = failure("org/nowhere")
        assert found["kind"] == "not_found"
        assert "that your token may see" in found["message"]

    def test_private_with_the_right_token(self, hub, token):
        hub.private["org/name"] = token
        assert json.loads(run("org/name", "--weights", "headers").stdout)["stored"]
        assert {r.token for r in hub.log} == {token}

    def test_gated_without_a_token(self, hub):
        hub.gated.add("org/name")
        found = failure("org/name")
        assert found["kind"] == "gated"
        assert "no token is set" in found["message"]
        assert f"{hub.url}/org/name" in found["hint"]

    def test_gated_with_a_token(self, hub, token):
        hub.gated.add("org/name")
        found = failure("org/name")
        assert found["kind"] == "gated"
        assert "your token has none" in found["message"]

    def test_a_wrong_token(self, hub, monkeypatch):
        monkeypatch.setenv("HF_TOKEN", SECRET)
        found = failure("org/name")
        assert found["kind"] == "gated"
        assert "does not accept the token" in found["message"]

    def test_no_such_revision(self, hub):
        found = failure("org/name@v9")
        assert found["kind"] == "not_found"
        assert "no revision v9" in found["message"]

    def test_offline(self, hub):
        found = failure("org/name", "--offline")
        assert found["kind"] == "offline"
        assert "may not be used" in found["message"]
        assert hub.log == []

    def test_offline_with_a_cached_config_and_headers_asked(self, hub):
        run("org/name")
        found = failure("org/name", "--offline", "--weights", "headers")
        assert (found["kind"], "may not be used" in found["message"]) == ("offline", True)

    def test_nobody_answers(self, hub, monkeypatch):
        monkeypatch.setattr(huggingface_hub.utils._http.time, "sleep", lambda _: None)
        nowhere = "http://127.0.0.1:9"
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", nowhere)
        monkeypatch.setattr(
            huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", _template(nowhere)
        )
        found = failure("org/name")
        assert found["kind"] == "offline"
        assert "cannot be reached" in found["message"]

    def test_an_error_of_the_server(self, hub):
        run("org/name")
        hub.failing = 418  # one that huggingface_hub does not try again
        found = failure("org/name", "--weights", "headers", "--no-cache")
        assert found["kind"] == "offline"
        assert "(418)" in found["message"]


class TestBadConnections:
    def shard(self, saved):
        return sorted(path.name for path in saved.glob("*.safetensors"))[1]

    def test_a_cut_connection(self, hub, saved):
        hub.cut = self.shard(saved)
        assert failure("org/name", "--weights", "headers")["kind"] == "offline"

    def test_a_slow_one(self, hub, saved):
        hub.slow = self.shard(saved)
        found = failure("org/name", "--weights", "headers")
        assert (found["kind"], "cannot be reached" in found["message"]) == ("offline", True)

    def test_a_server_that_ignores_ranges_fills_no_memory(self, hub, saved):
        hub.whole = self.shard(saved)
        found = failure("org/name", "--weights", "headers")
        assert found["kind"] == "corrupt"
        assert "other bytes" in found["message"]

    def damaged(self, hub, saved, folder, header, data=b""):
        """Serve the repository with other bytes in place of a shard, and return the failure."""
        shutil.copytree(saved, folder)
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        content = struct.pack("<Q", len(text)) + text + data
        (folder / self.shard(saved)).write_bytes(content)
        hub.folders["org/bad"] = folder
        found = failure("org/bad", "--weights", "norms")
        assert found["kind"] == "corrupt"
        assert self.shard(saved) in found["message"]
        return found["message"]

    def test_a_header_longer_than_the_file(self, hub, saved, tmp_path):
        shutil.copytree(saved, tmp_path / "bad")
        (tmp_path / "bad" / self.shard(saved)).write_bytes(b"\xff" * 64)
        hub.folders["org/bad"] = tmp_path / "bad"
        found = failure("org/bad", "--weights", "headers")
        assert found["kind"] == "corrupt"
        assert "longer than the file" in found["message"]

    @pytest.mark.parametrize(
        ("header", "words"),
        [
            (b"no json", "cannot be read"),
            (b'["a"]', "cannot be read"),
            ({"a": {"dtype": "F32"}}, "cannot be read"),
            ({"a": 3}, "cannot be read"),
            ({"a": ONE | {"data_offsets": [0, 80]}}, "a lies outside of it"),
            ({"a": ONE | {"data_offsets": [-8, 0]}}, "a lies outside of it"),
            ({"a": ONE | {"shape": [3]}}, "the values of a do not fill its shape"),
            ({"a": ONE, "b": ONE | {"data_offsets": [4, 12]}}, "a and b overlap"),
            (f'{{"a": {json.dumps(ONE)}, "a": {json.dumps(ONE)}}}'.encode(), "lists a twice"),
            ({"model.norm.weight": ONE}, "holds model.norm.weight, and so does"),
        ],
    )
    def test_a_damaged_header(self, hub, saved, tmp_path, header, words):
        assert words in self.damaged(hub, saved, tmp_path / "bad", header, b"\0" * 16)

    def test_an_index_that_lies_of_a_tensor(self, hub, saved, tmp_path):
        shutil.copytree(saved, tmp_path / "bad")
        path = tmp_path / "bad" / "model.safetensors.index.json"
        index = json.loads(path.read_text())
        index["weight_map"]["more.weight"] = self.shard(saved)
        path.write_text(json.dumps(index))
        hub.folders["org/bad"] = tmp_path / "bad"
        found = failure("org/bad", "--weights", "headers")
        assert (found["kind"], "places more.weight" in found["message"]) == ("corrupt", True)

    def test_an_index_that_names_a_missing_shard(self, hub, saved, tmp_path):
        shutil.copytree(saved, tmp_path / "bad")
        (tmp_path / "bad" / self.shard(saved)).unlink()
        hub.folders["org/bad"] = tmp_path / "bad"
        found = failure("org/bad", "--weights", "headers")
        assert (found["kind"], "missing from the repo" in found["message"]) == ("corrupt", True)
