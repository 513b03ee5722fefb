import hashlib
import json
import struct

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st

import vitrail
from tests.checkpoint.making import made, resnet, same_weights
from tests.tiny import vit_config
from vitrail import CheckpointError, ConfigError, Preprocessing
from vitrail.base.container import open_container
from vitrail.checkpoint.contents import needed_shapes
from vitrail.checkpoint.store import NUMERICS, describe, read_store

LABELS = ["ant", "bee", 'a "quoted" \\ label', "Ümläut 蜂", "", "[bold]", "vitrail.sha256"]


def header_of(path) -> dict:
    data = path.read_bytes()
    return json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])


def with_header(path, change, *, digest: bool = True) -> None:
    """Rewrite the header of our file, with a digest that holds."""
    data = path.read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    change(header)
    header["__metadata__"]["vitrail.sha256"] = "0" * 64
    text = json.dumps(header, separators=(",", ":")).encode()
    new = struct.pack("<Q", len(text)) + text + data[8 + length :]
    found = hashlib.sha256(new).hexdigest() if digest else "0" * 64
    path.write_bytes(new.replace(b'"vitrail.sha256":"' + b"0" * 64, f'"vitrail.sha256":"{found}'.encode()))


@pytest.fixture
def path(tmp_path):
    return vitrail.save(made(vit_config()), tmp_path / "x.safetensors", labels=LABELS)


def test_one_file_carries_everything(tmp_path) -> None:
    model = made(vit_config())
    pixels = Preprocessing(image_size=(12, 16), interpolation="bicubic", mean=(0.1, 0.2, 0.3))
    history = {"data": "hymenoptera", "recipe": {"epochs": 3}, "metrics": {"top1": 0.93}}
    vitrail.save(model, tmp_path / "x.safetensors", labels=LABELS, preprocessing=pixels, provenance=history)
    back = vitrail.load(tmp_path / "x.safetensors")
    assert back.info.labels == tuple(LABELS)
    assert back.info.preprocessing == pixels
    assert {name: back.info.provenance[name] for name in history} == history
    assert back.info.provenance["versions"] == {"torch": torch.__version__, "vitrail": vitrail.__version__}
    assert len(back.info.digest) == 64
    assert not back.training


def test_what_was_loaded_is_saved_again_with_its_parents_digest(path, tmp_path) -> None:
    first = vitrail.load(path)
    vitrail.save(first, tmp_path / "y.safetensors")
    second = vitrail.load(tmp_path / "y.safetensors")
    assert second.info.provenance["parent"] == first.info.digest
    assert second.info.labels == first.info.labels
    vitrail.save(second, tmp_path / "z.safetensors")
    assert vitrail.load(tmp_path / "z.safetensors").info.provenance["parent"] == second.info.digest


def test_a_model_can_be_saved_over_the_file_that_it_was_loaded_from(path) -> None:
    model = vitrail.load(path)
    with torch.no_grad():
        model.head.linear.bias.add_(1)
    wanted = model.head.linear.bias.clone()
    vitrail.save(model, path)
    assert torch.equal(vitrail.load(path).head.linear.bias, wanted)
    assert torch.equal(model.head.linear.bias, wanted)


def test_changing_a_loaded_model_does_not_change_the_file(path) -> None:
    before = path.read_bytes()
    model = vitrail.load(path)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert path.read_bytes() == before


def test_a_loaded_model_trains(path) -> None:
    model = vitrail.load(path).train()
    model(torch.randn(2, 3, 12, 16)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_the_same_model_gives_the_same_bytes(tmp_path) -> None:
    for name in ("x", "y"):
        vitrail.save(made(vit_config()), tmp_path / f"{name}.safetensors", labels=LABELS)
    assert (tmp_path / "x.safetensors").read_bytes() == (tmp_path / "y.safetensors").read_bytes()


def test_safetensors_itself_reads_our_file(path) -> None:
    state = safetensors.torch.load_file(path)
    model = vitrail.load(path)
    assert {name: value.shape for name, value in state.items()} == needed_shapes(model.config)
    for name, value in model.state_dict().items():
        assert torch.equal(state[name], value)


def test_the_digest_is_sha256_of_the_file_with_its_own_digits_as_zeros(path) -> None:
    digest = header_of(path)["__metadata__"]["vitrail.sha256"]
    data = path.read_bytes()
    assert data.count(digest.encode()) == 1
    assert hashlib.sha256(data.replace(digest.encode(), b"0" * 64)).hexdigest() == digest


def test_the_header_is_plain_json_with_numerics_apart(path) -> None:
    metadata = header_of(path)["__metadata__"]
    assert metadata["vitrail.format"] == "1"
    config, numerics = json.loads(metadata["vitrail.config"]), json.loads(metadata["vitrail.numerics"])
    assert config["kind"] == "vit"
    assert numerics == {"gelu": "tanh", "norm_eps": 1e-6, "position_resize": "google"}
    assert not set(NUMERICS) & set(config)


@pytest.mark.parametrize("config", [vit_config(), resnet()], ids=["vit", "resnet"])
def test_200_random_bit_flips_are_all_caught(config, tmp_path) -> None:
    path = vitrail.save(made(config), tmp_path / "x.safetensors", labels=[str(n) for n in range(7)])
    good = path.read_bytes()
    generator = torch.Generator().manual_seed(0)
    header = 8 + struct.unpack("<Q", good[:8])[0]
    places = torch.randint(8 * len(good), (150,), generator=generator).tolist()
    places += torch.randint(8 * header, (50,), generator=generator).tolist()
    for place in places:
        bad = bytearray(good)
        bad[place // 8] ^= 1 << place % 8
        path.write_bytes(bad)
        with pytest.raises(CheckpointError, match=r"x\.safetensors"):
            vitrail.load(path)
    path.write_bytes(good)
    vitrail.load(path)


def test_every_byte_of_the_header_counts(tmp_path) -> None:
    small = vit_config(dim=4, depth=1, num_heads=1, mlp_dim=4, num_classes=1)
    path = vitrail.save(made(small), tmp_path / "x.safetensors")
    good = path.read_bytes()
    for place in range(0, 8 + struct.unpack("<Q", good[:8])[0], 3):
        bad = bytearray(good)
        bad[place] ^= 1
        path.write_bytes(bad)
        with pytest.raises(CheckpointError):
            vitrail.load(path)


@given(st.integers(0, 10**6), st.integers(1, 64))
def test_a_file_cut_short_or_grown_is_refused(tmp_path_factory, cut, grown) -> None:
    path = tmp_path_factory.mktemp("cut") / "x.safetensors"
    vitrail.save(made(vit_config(dim=8, depth=1, mlp_dim=8)), path)
    good = path.read_bytes()
    for bad in (good[: cut % len(good)], good + bytes(grown)):
        path.write_bytes(bad)
        with pytest.raises(CheckpointError):
            vitrail.load(path)


def test_a_newer_format_asks_for_a_newer_vitrail(path) -> None:
    with_header(path, lambda header: header["__metadata__"].update({"vitrail.format": "2"}))
    with pytest.raises(CheckpointError, match="format version 2, but this Vitrail reads version 1"):
        vitrail.load(path)


def test_with_header_makes_files_that_load(path) -> None:
    """So that the refusals around are not of this helper's making."""
    with_header(path, lambda _: None)
    vitrail.load(path)
    with_header(path, lambda _: None, digest=False)
    with pytest.raises(CheckpointError, match="SHA-256"):
        vitrail.load(path)


@pytest.mark.parametrize(
    ("part", "text", "message"),
    [
        ("config", "{", "cannot be read as JSON"),
        ("config", "[" * 100_000, "cannot be read as JSON"),
        ("config", "[]", "no config of a model of a known kind"),
        ("config", '{"kind": "mlp"}', "no config of a model of a known kind"),
        ("config", '{"kind": "vit", "dim": 8}', "depth is missing"),
        ("numerics", '{"gelu": "relu"}', "gelu must be one of tanh, erf"),
        ("labels", '["one"]', "1 labels were given for 7 classes"),
        ("labels", '{"a": 1}', "not a list of names"),
        ("preprocessing", '{"mean": [0.5]}', "mean has 1 channels"),
        ("provenance", "[1]", "not a table"),
    ],
)
def test_a_header_that_lies_is_refused_with_the_part(part, text, message, path) -> None:
    with_header(path, lambda header: header["__metadata__"].update({f"vitrail.{part}": text}))
    with pytest.raises(CheckpointError, match=message):
        vitrail.load(path)


@pytest.mark.parametrize(
    "changes", [{"depth": 10**9}, {"image_size": [4 * 10**6, 4 * 10**6]}, {"image_size": [4 * 10**4, 4 * 10**4]}]
)
def test_a_config_that_claims_more_than_the_file_holds_is_refused_before_it_is_built(changes, path) -> None:
    def grow(header) -> None:
        config = json.loads(header["__metadata__"]["vitrail.config"])
        header["__metadata__"]["vitrail.config"] = json.dumps(config | changes)

    with_header(path, grow)
    with pytest.raises(
        CheckpointError, match=r"file of 32 tensors does not hold|VITRAIL_LIMIT_TOKENS|depth is 1000000000"
    ):
        vitrail.load(path)


def test_a_config_of_another_model_is_refused_with_every_difference(path) -> None:
    def change(header) -> None:
        config = json.loads(header["__metadata__"]["vitrail.config"])
        header["__metadata__"]["vitrail.config"] = json.dumps(config | {"mlp_dim": 65, "representation_size": 32})

    with_header(path, change)
    with pytest.raises(CheckpointError) as error:
        vitrail.load(path)
    message = str(error.value)
    assert "missing (2)" in message
    assert "head.representation.weight 32x32" in message
    assert "misshapen (6)" in message
    assert "encoder.blocks.1.mlp.out.weight is 32x64, but 32x65 is needed" in message


def test_labels_must_be_one_for_each_class(tmp_path) -> None:
    with pytest.raises(ConfigError, match="2 labels were given for 7 classes"):
        vitrail.save(made(vit_config()), tmp_path / "x.safetensors", labels=["a", "b"])
    assert not (tmp_path / "x.safetensors").exists()


@pytest.mark.usefixtures("unchecked")
def test_labels_must_be_names(tmp_path) -> None:
    with pytest.raises(ConfigError, match="3 is not text"):
        vitrail.save(made(vit_config()), tmp_path / "x.safetensors", labels=["a", "b", 3, "d", "e", "f", "g"])


@pytest.mark.parametrize("pixels", [Preprocessing(), Preprocessing(image_size=(12, 16), mean=(0.5,), std=(0.5,))])
def test_preprocessing_for_other_images_is_refused(pixels, tmp_path) -> None:
    with pytest.raises(ConfigError, match="but the model takes 12x16 with 3"):
        vitrail.save(made(vit_config()), tmp_path / "x.safetensors", preprocessing=pixels)
    vitrail.save(made(resnet()), tmp_path / "x.safetensors", preprocessing=Preprocessing())


def test_provenance_that_json_cannot_hold_is_refused(tmp_path) -> None:
    with pytest.raises(ConfigError, match="provenance cannot be written as JSON"):
        vitrail.save(made(vit_config()), tmp_path / "x.safetensors", provenance={"when": object()})


def test_a_model_without_weights_is_not_saved(tmp_path) -> None:
    with pytest.raises(CheckpointError, match="device 'meta' and has no weights"):
        vitrail.save(vitrail.build(vit_config(), device="meta"), tmp_path / "x.safetensors")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_bad_numbers_are_warned_of_by_name(value, tmp_path) -> None:
    model = made(vit_config())
    with torch.no_grad():
        model.encoder.blocks[1].mlp.out.bias[3] = value
        model.head.linear.weight[0, 0] = value
    path = vitrail.save(model, tmp_path / "x.safetensors")
    with pytest.warns(
        UserWarning, match=r"NaN or infinite weights in (encoder\S+|head\S+), (encoder\S+|head\S+)\."
    ) as told:
        vitrail.load(path)
    assert "encoder.blocks.1.mlp.out.bias" in str(told[0].message)
    assert "head.linear.weight" in str(told[0].message)


def test_large_numbers_are_not_taken_for_infinite(tmp_path) -> None:
    model = made(vit_config(), torch.float16)
    with torch.no_grad():
        model.encoder.blocks[0].mlp.hidden.weight.fill_(60_000)
    same_weights(vitrail.load(vitrail.save(model, tmp_path / "x.safetensors")), model)
    model = made(vit_config())
    with torch.no_grad():
        model.encoder.blocks[0].mlp.hidden.weight.fill_(3e38)
    same_weights(vitrail.load(vitrail.save(model, tmp_path / "x.safetensors")), model)


def test_weights_are_views_of_the_mapped_file(path) -> None:
    """Reading a tensor allocates nothing: two reads are the same memory."""
    contents = read_store(open_container(path))
    name = "encoder.blocks.0.mlp.hidden.weight"
    assert contents.tensors[name].data_ptr() == contents.tensors[name].data_ptr()
    assert describe(contents)["labels"] == LABELS
