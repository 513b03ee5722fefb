import json

import pytest

from vitrail.cli.main import main
from vitrail.recipes import paper

pytestmark = pytest.mark.usefixtures("unchecked")  # no tensors here, and the checks refuse 7 where 7.0 is meant


def planned(capsys, *words: str) -> dict:
    assert main(["plan", "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_papers_largest_run_stands_beside_the_papers_figures(capsys) -> None:
    assert main(["plan", "H/14", "--preset", "jft300m"]) == 0
    lines = {line[:28].strip(): line[28:] for line in capsys.readouterr().out.splitlines()}
    assert "4,258 exaFLOPs" in lines["training"]
    assert "paper: 4,262 exaFLOPs, Table 6" in lines["training"]
    assert "paper: 2,500 core-days, Table 2" in lines["work"]
    assert "632,045,800" in lines["parameters"]


@pytest.mark.parametrize("model", ["L/16", "ViT-L/16"])
def test_json_holds_the_same(model, capsys) -> None:
    report = planned(capsys, model, "--preset", "jft300m")
    assert report["model"] == model
    assert report["epochs"] == 14
    assert report["exaflops"] == pytest.approx(1567, rel=0.02)
    assert report["paper"] == {"exaflops": 1567, "tpuv3_core_days": 680}


def test_flags_win_over_the_preset(capsys) -> None:
    report = planned(capsys, "L/16", "--preset", "jft300m", "--epochs", "7", "--batch", "1024")
    assert (report["epochs"], report["batch_per_device"]) == (7, 1024)
    assert report["paper"] == {"exaflops": 783}
    assert planned(capsys, "L/16", "--preset", "jft300m", "--images", "1000")["paper"] == {}


def test_without_a_preset_imagenet_is_meant(capsys) -> None:
    report = planned(capsys, "B/16")
    assert (report["images"], report["epochs"], report["steps"]) == (1_281_167, 300, -(-1_281_167 * 300 // 4096))
    assert report["paper"] == {}


@pytest.mark.parametrize("preset", paper.FINETUNING_STEPS)
def test_fine_tuning_takes_the_steps_of_table_4_at_384_pixels(preset, capsys) -> None:
    report = planned(capsys, "B/16", "--preset", preset)
    assert report["steps"] == paper.FINETUNING_STEPS[preset]
    assert report["cost"]["tokens"] == 577
    assert report["batch_per_device"] == 512
    assert report["optimizer"] == report["weights"]  # SGD with momentum keeps one value for each weight


def test_devices_share_the_batch(capsys) -> None:
    one, eight = (planned(capsys, "B/16", "--devices", devices) for devices in ("1", "8"))
    assert eight["batch_per_device"] * 8 == one["batch_per_device"]
    assert eight["activations"] * 8 == one["activations"]
    assert eight["days"] == pytest.approx(one["days"] / 8)
    assert eight["device_days"] == pytest.approx(one["device_days"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["B16"], "there is no model 'B16'"),
        (["B16", "--preset", "jft300m"], "there is no model 'B16'"),
        (["S/16", "--preset", "jft300m"], "the paper does not pre-train S/16 on JFT-300M"),
        (["B/16", "--image-size", "225"], "patch size 16x16 does not divide the image size 225x225"),
        (["B/16", "--batch", "0"], "--batch is 0, but must be above 0"),
        (["B/16", "--devices", "0"], "--devices is 0, but must be above 0"),
        (["B/16", "--devices", "3"], "a batch of 4096 does not split over 3 devices"),
        (["B/16", "--utilisation", "33"], "--utilisation is 33.0, but must be above 0 and at most 1"),
        (["B/16", "--device-flops", "-1"], "--device-flops is -1.0, but must be above 0"),
        (["B/16", "--memory", "nan"], "--memory is nan, but must be above 0"),
        (["B/16", "--epochs", "0"], "--epochs is 0"),
        (["B/16", "--epochs", "inf"], "--epochs is inf"),
        (["B/16", "--memory", "inf"], "--memory is inf"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(words, message, capsys) -> None:
    assert main(["plan", *words]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.strip().splitlines()) == 1
    assert message in output.err
