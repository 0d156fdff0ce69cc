"""Configs become smaller and stay consistent; what follows from a field is left to its class."""

from normscope.inspection import BlockReport, BranchKind, BranchReport, Placement, Site
from normscope.verification.shrink import shrunk_configs, with_changes


def block(path: str, site: Site = Site.BRANCH_INPUT) -> BlockReport:
    branch = BranchReport(
        kind=BranchKind.MLP,
        placement=Placement.PRE,
        sites=(site,),
        formula="x + f(N(x))",
        parallel=False,
        shared_norm=False,
        add=path,
        norms={},
    )
    return BlockReport(
        path=path,
        stack=path.rpartition(".")[0],
        index=int(path.rpartition(".")[2]),
        calls=1,
        placement=Placement.PRE,
        branches=(branch,),
    )


STACK = [block(f"layers.{index}") for index in range(12)]


def test_the_smallest_config_comes_first_and_the_whole_one_last() -> None:
    config = {"layers": 12, "width": 768, "kinds": ["a"] * 12, "vocab_size": 32000, "eps": 1e-6}
    every = list(shrunk_configs(config, STACK))
    assert every[0].config == {
        "layers": 3, "width": 48, "kinds": ["a"] * 3, "vocab_size": 32000, "eps": 1e-6,
    }  # fmt: skip
    assert every[-1].config == config


def test_enough_blocks_stay_to_show_each_kind() -> None:
    odd = [*STACK[:6], block("layers.6", Site.TRUNK), *STACK[7:]]
    first = next(iter(shrunk_configs({"layers": 12}, odd)))
    assert first.config == {"layers": 8}


def test_heads_keep_their_number_at_first_and_lists_their_proportions() -> None:
    config = {"num_heads": 12, "sections": [16, 24, 24], "flag": True, "side": 15}
    widths = [one.config["sections"] for one in shrunk_configs(config, STACK)]
    assert widths[0] == [16, 24, 24]
    assert [2, 3, 3] in widths
    heads = [
        (one.config["num_heads"], one.config["sections"]) for one in shrunk_configs(config, STACK)
    ]
    assert heads.index((12, [2, 3, 3])) < heads.index((3, [4, 6, 6]))
    assert all(one.config["flag"] is True for one in shrunk_configs(config, STACK))


def test_images_become_a_few_patches() -> None:
    config = {"vision": {"image_size": 224, "patch_size": 16}}
    first = next(iter(shrunk_configs(config, STACK)))
    assert first.config == {"vision": {"image_size": 64, "patch_size": 16}}


def test_sides_of_an_image_keep_their_proportion() -> None:
    tall = {"image_size": [896, 448], "patch_size": 16}
    video = {"image_size": [288, 288], "tubelet_size": [1, 18, 18]}
    first = next(iter(shrunk_configs({"tall": tall, "video": video}, STACK))).config
    assert first["tall"]["image_size"] == [128, 64]
    assert first["video"]["image_size"] == [72, 72]


def test_an_image_without_patches_becomes_small() -> None:
    first = next(iter(shrunk_configs({"image_size": 600}, STACK)))
    assert first.config == {"image_size": 128}


def test_codebooks_stay_as_they_are() -> None:
    config = {"num_codebooks": 12, "codebook_size": 2048, "audio_token_offset": 131072}
    assert next(iter(shrunk_configs(config, STACK))).config == config


def test_the_width_of_a_codebook_is_one_like_any_other() -> None:
    config = {"codebook_dim": 512, "hidden_size": 512}
    assert next(iter(shrunk_configs(config, STACK))).config == dict.fromkeys(config, 32)


def test_positions_are_no_blocks_where_there_are_as_many() -> None:
    config = {"layers": 12, "max_position_embeddings": 12, "context_length": 12}
    assert next(iter(shrunk_configs(config, STACK))).config == config | {"layers": 3}


def test_only_what_changed_is_added_to_what_was_given() -> None:
    inner = {"model_type": "text", "width": 64, "depth": 2}
    whole = {"layers": 12, "names": ["stage12"], "text": inner, "part": {"width": 64, "rate": 0.1}}
    shrunk = {
        "layers": 3, "names": ["stage12"], "text": {**inner, "width": 8},
        "part": {"width": 8, "rate": 0.1},
    }  # fmt: skip
    assert with_changes({"kind": "x"}, whole, shrunk) == {
        "kind": "x", "layers": 3, "text": {"model_type": "text", "width": 8},
        "part": {"width": 8, "rate": 0.1},
    }  # fmt: skip


def test_a_config_within_is_given_whole_on_demand() -> None:
    whole = {"model_type": "pair", "seen": {"model_type": "seen", "width": 64, "heads": 16}}
    small = {"model_type": "pair", "seen": {"model_type": "seen", "width": 8, "heads": 16}}
    assert with_changes({}, whole, small) == {"seen": {"model_type": "seen", "width": 8}}
    assert with_changes({}, whole, small, entire=True) == {"seen": small["seen"]}
    given = {"seen": {"width": 64}}
    assert with_changes(given, whole, small, entire=True) == {
        "seen": {"model_type": "seen", "width": 8}
    }


def last_resorts(config: dict[str, object], lists: tuple[int, ...] = ()) -> list[dict[str, object]]:
    return [dict(one.config) for one in shrunk_configs(config, STACK, lists)]


def test_numbers_of_blocks_that_are_gone_become_those_of_blocks_as_deep() -> None:
    config = {"layers": 12, "feature_layer": [11, 6, 10], "last_layer": -1, "first_layer": -9}
    made = last_resorts(config)
    assert made[0]["feature_layer"] == [11, 6, 10]
    moved = {"layers": 3, "feature_layer": [2, 1], "last_layer": -1, "first_layer": -3}
    assert moved in made


def test_numbers_of_blocks_that_are_left_stay() -> None:
    made = last_resorts({"layers": 12, "out_indices": [0, 2], "num_hidden_layers": 11})
    assert all(one["out_indices"] == [0, 2] for one in made)
    assert all(one["num_hidden_layers"] == 11 for one in made)


def test_lists_without_blocks_become_short_where_nothing_else_helps() -> None:
    made = last_resorts({"layers": 12, "stem_depth": 24}, lists=(12, 24))
    assert made[0]["stem_depth"] == 24
    assert {"layers": 3, "stem_depth": 3} in made


def test_the_size_of_a_head_may_stay_while_the_stream_becomes_narrow() -> None:
    made = last_resorts({"layers": 12, "hidden_size": 2048, "rope_head_dim": 64})
    assert made[0]["rope_head_dim"] == 4
    assert {"layers": 3, "hidden_size": 128, "rope_head_dim": 64} in made


def test_experts_become_fewer_where_nothing_else_helps() -> None:
    made = last_resorts({"layers": 12, "num_experts": 256, "num_experts_per_tok": 8})
    assert made[0]["num_experts"] == 256
    assert {"layers": 3, "num_experts": 16, "num_experts_per_tok": 8} in made


def test_a_size_is_no_number_of_blocks() -> None:
    first = next(iter(shrunk_configs({"layers": 12, "patch_size": 12, "image_size": 48}, STACK)))
    assert first.config == {"layers": 3, "patch_size": 12, "image_size": 48}
