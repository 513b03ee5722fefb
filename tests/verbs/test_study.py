"""Studies on made data: cells, resume, several processes, divergence, failures, files, bad input."""

import csv
import datetime
import json
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import vitrail
from tests.verbs.making import data_file, small_model
from vitrail import Claim, ConfigError, InputError, Study, Variant, VitrailError
from vitrail.cli.main import main
from vitrail.model.cost import cost
from vitrail.runs.draft import Facts
from vitrail.studies.catalogue import STUDIES
from vitrail.studies.plan import Pace, steps_within
from vitrail.studies.study import check_variants, one_at_a_time, product
from vitrail.verbs import study_speed
from vitrail.verbs.studies import _USUAL, runs_of, teraflops_of

GUIDE = Path(__file__).parents[2] / "docs" / "studies.md"
RATES = {"low": {"schedule.peak": 1e-4}, "high": {"schedule.peak": 1e-2}}


def rates(**changes: object) -> Study:
    fields = {
        "name": "rates",
        "question": "Which rate?",
        "variants": lambda *_: product({"rate": RATES}),
        "claims": (Claim(better="high", worse="low"),),
    }
    return Study(**fields | changes)


def made_facts() -> Facts:
    """Facts of the made data."""
    return Facts(images=60, classes=3, channels=3, side=8)


def test_a_study_makes_every_cell_once_and_resumes(tmp_path) -> None:
    data, out, notes = data_file(tmp_path), tmp_path / "study", []
    result = vitrail.study(rates(), data, steps=2, seeds=2, out=out, note=notes.append)
    assert [(cell.variant, cell.seed) for cell in result.cells] == [("low", 0), ("high", 0), ("low", 1), ("high", 1)]
    assert len(notes) == 4
    assert result.spread("low").count == 2
    assert result.tests[Claim(better="high", worse="low")].count == 2
    rows = list(csv.DictReader(result.csv.read_text().splitlines()))
    assert len(rows) == 4
    assert float(rows[0]["accuracy"]) == result.values("low")[0]
    page = result.page.read_text()
    assert "Which rate?" in page
    assert "<svg" in page
    (out / "cells" / "high-1" / "cell.json").unlink()
    again = vitrail.study(rates(), data, steps=2, seeds=2, out=out, note=notes.append)
    assert len(notes) == 5
    assert again.cells == result.cells
    assert json.loads((out / "result.json").read_text())["steps"] == 2


def test_a_diverged_cell_is_a_result_and_a_failed_one_is_named(tmp_path) -> None:
    values = {
        "broken": {"schedule.peak": 1e-3},
        "good": {"schedule.peak": 1e-3},
        "wild": {"schedule.peak": 1e30, "optimizer.name": "sgd", "optimizer.clip_norm": None},
    }
    failing, out = rates(variants=lambda *_: product({"rate": values}), claims=()), tmp_path / "study"
    data, obstacle = data_file(tmp_path), out / "cells" / "broken-0" / "run"

    def obstruct(sentence: str) -> None:
        if sentence.startswith("broken, seed 0: "):
            obstacle.write_text("a file where the run's folder goes")

    result = vitrail.study(failing, data, steps=8, seeds=1, out=out, note=obstruct)
    assert [(cell.variant, cell.diverged is None) for cell in result.cells] == [("good", True), ("wild", False)]
    assert list(result.failed) == ["broken, seed 0"]
    assert result.diverged("wild") == 1
    assert "broken, seed 0 is not finished" in result.page.read_text()
    obstacle.unlink()
    again = vitrail.study(failing, data, steps=8, seeds=1, out=out, note=lambda _: None)
    assert not again.failed
    assert len(again.cells) == 3


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"model.mixer": "mlp", "model.class_token": True}, "'bad': .*class token"),
        ({"optimizer.nam": "adam"}, "'bad': .*nam is not a setting"),
        ({"model.num_heads": 5}, "'bad': .*5"),
    ],
)
def test_a_factor_that_the_model_cannot_have_is_refused_before_anything_runs(settings, sentence, tmp_path) -> None:
    values = {"good": {}, "bad": settings}
    impossible = rates(variants=lambda *_: product({"factor": values}), claims=())
    with pytest.raises(vitrail.VitrailError, match=sentence):
        vitrail.study(impossible, data_file(tmp_path), steps=2, seeds=1, out=tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_two_processes_share_the_cells(tmp_path) -> None:
    data, out, toml = data_file(tmp_path), tmp_path / "study", mine(tmp_path)
    command = [sys.executable, "-m", "vitrail", "study", str(toml), "--data", str(data), "--steps", "2", "--seeds", "2"]
    workers = [
        subprocess.Popen(
            [*command, "--out", str(out), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    outputs = [worker.communicate() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], outputs
    begun = [line for _, errors in outputs for line in errors.splitlines() if re.search(r"seed \d: \d of", line)]
    assert len(begun) == 4
    figures = [json.loads(output)["variants"] for output, _ in outputs]
    assert figures[0] == figures[1]


def mine(folder: Path) -> Path:
    path = folder / "mine.toml"
    path.write_text(
        'name = "mine"\nquestion = "?"\n[factors.rate]\na = {"schedule.peak" = 1e-4}\nb = {"schedule.peak" = 1e-3}\n'
    )
    return path


@pytest.mark.slow
def test_two_ranks_make_each_cell_together(tmp_path) -> None:
    data, out = data_file(tmp_path, 90), tmp_path / "study"
    ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = ["-m", "vitrail", "study", str(mine(tmp_path)), "--data", str(data), "--minutes", "0.6", "--seeds", "1"]
    both = subprocess.run([*ranks, *command, "--out", str(out), "--json"], capture_output=True, text=True, check=False)
    assert both.returncode == 0, both.stderr
    assert len(re.findall(r"seed 0: \d of 2", both.stderr)) == 2
    result = json.loads(both.stdout)
    alone = vitrail.study(mine(tmp_path), data, steps=result["steps"], seeds=1, out=tmp_path / "alone")
    figures = [variant["figures"] for variant in result["variants"]]
    assert [one["accuracy"]["mean"] for one in figures] == pytest.approx(
        [alone.spread(name).mean for name in ("a", "b")], abs=0.1
    )
    assert [one["exaflops"]["mean"] for one in figures] == [alone.spread(name, "exaflops").mean for name in ("a", "b")]


@pytest.mark.slow
def test_the_cell_of_a_killed_process_is_taken_over_and_resumed(tmp_path) -> None:
    data, out = data_file(tmp_path, 90), tmp_path / "study"
    command = [sys.executable, "-m", "vitrail", "study", str(mine(tmp_path)), "--data", str(data)]
    command += ["--steps", "400", "--seeds", "1", "--out", str(out), "--json"]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    metrics = out / "cells" / "a-0" / "run" / "metrics.jsonl"
    while not (metrics.exists() and metrics.read_text().count("\n") > 3):
        assert first.poll() is None, first.communicate()
        time.sleep(0.05)
    second = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (out / "cells" / "b-0" / "lease" / "claim-0").exists():
        assert second.poll() is None, second.communicate()
        time.sleep(0.05)
    first.kill()
    first.communicate()
    output, errors = second.communicate()
    assert second.returncode == 0, errors
    begun = [line.partition(": ")[2] for line in errors.splitlines() if re.search(r"seed 0: \d of 2", line)]
    assert [line[:1] for line in begun] == ["b", "a"]
    assert not json.loads(output)["failed"]
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    steps = [row["step"] for row in rows if "loss" in row]
    assert steps == sorted(set(steps))
    assert [row["step"] for row in rows if "val_accuracy" in row] == [400]


def test_the_study_of_the_guide_runs(tmp_path) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), flags=re.DOTALL)
    assert len(example.splitlines()) <= 40
    path = tmp_path / "mine.toml"
    path.write_text(example)
    result = vitrail.study(path, data_file(tmp_path), steps=2, seeds=1, out=tmp_path / "study", note=lambda _: None)
    assert len(result.cells) == len(result.variants) == 4
    assert not result.failed


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_every_study_has_variants_that_can_be_built_and_claims_about_them(study) -> None:
    variants = study.variants(_USUAL, ["one", "other"])
    check_variants(study, variants)
    assert study.question.endswith((".", "?"))
    assert not study.points or study.paper_label
    assert len({point.name for point in study.points}) == len(study.points)


@pytest.mark.parametrize("name", ["resolution", "masking", "axial"])
def test_chains_of_runs_come_to_their_end(name, tmp_path) -> None:
    result = vitrail.study(name, data_file(tmp_path, 90), steps=4, seeds=1, out=tmp_path / "study", note=lambda _: None)
    assert not result.failed
    assert len(result.cells) == len(result.variants)


def test_transfer_takes_several_data_sets(tmp_path) -> None:
    (tmp_path / "other").mkdir()
    places = [data_file(tmp_path, 90), data_file(tmp_path / "other", 60).rename(tmp_path / "second.npz")]
    result = vitrail.study("transfer", places, steps=4, seeds=1, out=tmp_path / "study", note=lambda _: None)
    names = [cell.variant for cell in result.cells]
    assert names == ["made from scratch", "second to made", "made to second", "second from scratch"]
    claims = {(claim.better, claim.worse) for claim in result.tests}
    assert claims == {
        (variant.name, f"{variant.line} from scratch") for variant in result.variants if variant.source is not None
    }
    assert len(claims) == len(places)
    with pytest.raises(ConfigError, match="the study transfer takes at least 2 of `data`, which names 1"):
        vitrail.study("transfer", places[0], steps=4, out=tmp_path / "other-study")
    with pytest.raises(ConfigError, match="the study axial takes at most 1 of `data`, which names 2"):
        vitrail.study("axial", places, steps=4, out=tmp_path / "other-study")


def test_subsets_are_measured_with_few_images_and_after_fine_tuning_on_another_data_set(tmp_path) -> None:
    (tmp_path / "other").mkdir()
    places = [data_file(tmp_path, 90), data_file(tmp_path / "other", 60)]
    families = STUDIES["data-size"].variants(made_facts(), [])[:1]
    small = replace(STUDIES["data-size"], variants=lambda *_: families, claims=())
    result = vitrail.study(small, places, steps=20, seeds=1, out=tmp_path / "study", note=lambda _: None)
    [cell] = result.cells
    assert {"accuracy", "fewshot", "finetuned"} <= set(cell.figures)
    [config] = [json.loads(path.read_text()) for path in result.folder.glob("cells/*/tuned/**/config.json")]
    assert config["data"]["where"] == str(places[1])
    assert config["steps"] == 10
    first = json.loads((result.folder / "cells" / "ViT-0.125-0" / "run" / "config.json").read_text())
    assert (first["steps"], first["evaluate_every"], first["data"]["fraction"]) == (10, 1, 0.125)


def test_masking_varies_the_steps_and_fine_tunes_equally_long(tmp_path) -> None:
    lengths = [one for one in STUDIES["masking"].variants(made_facts(), []) if one.first != 0.5]
    short = replace(STUDIES["masking"], variants=lambda *_: lengths, claims=())
    result = vitrail.study(short, data_file(tmp_path, 90), steps=40, seeds=1, out=tmp_path / "s", note=lambda _: None)
    steps = {
        (path.parents[0].name, path.parents[1].name): json.loads(path.read_text())["steps"]
        for path in result.folder.glob("cells/*/*/config.json")
    }
    assert steps == {
        ("first", "no-pre-training-0"): 1,
        ("first", "a-tenth-of-the-steps-0"): 2,
        ("run", "no-pre-training-0"): 20,
        ("run", "a-tenth-of-the-steps-0"): 20,
    }


def test_speed_has_the_papers_models_and_sizes_in_whole_patches() -> None:
    variants = STUDIES["speed"].variants(_USUAL, [])
    assert [one.x for one in variants if one.line == "B/16"] == [64, 128, 224, 384, 512]
    assert [one.x for one in variants if one.line == "H/14"] == [56, 126, 224, 378, 504]
    assert [one.x for one in variants if one.line == "L/32"] == [64, 128, 224, 384, 512]
    assert len(variants) == 40


def test_speed_times_passes_and_leaves_out_batches_that_would_take_too_long(monkeypatch) -> None:
    model, batches = small_model(), []
    monkeypatch.setattr(study_speed, "_time_of", lambda _, images: batches.append(len(images)) or 0.01 * len(images))
    figures = study_speed.speed_figures(model, seconds=0.3)
    assert set(batches) == {1, 8}  # 32 images would take 0.32 s of 0.1
    assert figures["images_per_second"] == pytest.approx(100)
    room = (1 << 30) - 16 * figures["parameters"]
    monkeypatch.setattr(study_speed, "free_memory", lambda: float(1 << 30))
    need = 4 * cost(model.config).activations
    assert study_speed.speed_figures(model, seconds=0.3)["largest_batch"] == room // need


def test_too_little_time_for_one_pass_of_each_model_is_refused(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(study_speed, "matmul_peak", lambda _device, _threads: 1e9)
    with pytest.raises(ConfigError, match=r"one pass of each of 40 models, 3 times, takes about \d+.\d minutes; give"):
        vitrail.study("speed", data_file(tmp_path), minutes=1.0, out=tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_the_list_counts_runs_and_compute() -> None:
    pooling = STUDIES["pooling"]
    macs = sum(cost(variant.model).macs for variant in pooling.variants(_USUAL, []))
    assert teraflops_of(pooling) == pytest.approx(6 * macs * 64 * 1000 / 1e12)
    assert [runs_of(STUDIES[name]) for name in ("pooling", "transfer", "masking", "data-size")] == [6, 6, 13, 24]


def test_the_rule_shares_minutes_evenly_and_names_what_is_needed() -> None:
    paces = [Pace(step=0.5, fixed=5.0), Pace(step=1.5, fixed=5.0)]
    # 2 seeds x (2 x 5 seconds + steps x 2 seconds) = 600 - 20 seconds
    assert steps_within(paces, minutes=10.0, seeds=2, measured=20.0) == 140
    with pytest.raises(ConfigError, match=r"`minutes` is 1, but 4 runs of at least 20 steps take about 2.0 minutes"):
        steps_within(paces, minutes=1.0, seeds=2, measured=20.0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["positons"], "there is no study 'positons'.*Did you mean positions"),
        (["missing.toml"], "there is no file missing.toml"),
        (["positions"], "give --minutes for all of it, or --steps for each run"),
        (["positions", "--steps", "2", "--minutes", "3"], "a study has one length"),
        (["positions", "--minutes", "-1"], "--minutes is -1.0, but must be above 0"),
        (["positions", "--minutes", "1e18"], "--minutes is 1e[+]18, but must be above 0 and at most 5,270,400"),
        (["positions", "--steps", "2", "--seeds", "0"], "seeds"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence, capsys, tmp_path) -> None:
    assert main(["study", *words, "--data", str(data_file(tmp_path)), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert re.search(sentence, error)
    assert "Traceback" not in error
    assert not (tmp_path / "out").exists()


def test_a_budget_too_small_says_how_much_is_needed(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"take about [\d.]+ minutes; give that many, or fewer `seeds`"):
        vitrail.study(rates(), data_file(tmp_path), minutes=0.01, out=tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_settings_of_every_run_are_set_by_path_and_part_of_the_plan(tmp_path) -> None:
    data, out, settings = data_file(tmp_path), tmp_path / "study", {"model.mixer": "linear", "schedule.peak": 0.5}
    result = vitrail.study(rates(claims=()), data, steps=2, seeds=1, settings=settings, out=out, note=lambda _: None)
    config = json.loads((result.folder / "cells" / "low-0" / "run" / "config.json").read_text())
    assert config["model"]["mixer"]["kind"] == "linear"
    assert config["schedule"]["peak"] == 1e-4  # the variant's own
    with pytest.raises(InputError, match="holds another study"):
        vitrail.study(rates(claims=()), data, steps=2, seeds=1, out=out)


def test_folders_of_others_are_refused(tmp_path) -> None:
    data, out = data_file(tmp_path), tmp_path / "study"
    vitrail.study(rates(claims=()), data, steps=2, seeds=1, out=out, note=lambda _: None)
    with pytest.raises(InputError, match=r"holds another study.*seeds is 2 here and 1 there"):
        vitrail.study(rates(), data, steps=2, seeds=2, out=out)
    with pytest.raises(InputError, match=r"holds another study.*study is \"pooling\" here and \"rates\" there"):
        vitrail.study("pooling", data, steps=2, seeds=1, out=out)
    with pytest.raises(InputError, match="exists and is not a study"):
        vitrail.study(rates(), data, steps=2, seeds=1, out=tmp_path)


def test_a_data_set_too_small_for_the_subsets_is_refused(tmp_path) -> None:
    with pytest.raises(InputError, match=r"of which 'ViT, 0.125' takes 2; the study data-size needs two of each class"):
        vitrail.study("data-size", data_file(tmp_path), steps=2, out=tmp_path / "study")
    few = rates(measures=("accuracy", "fewshot"))
    with pytest.raises(InputError, match=r"has only \d training images of \w+, but the study rates measures with 5"):
        vitrail.study(few, data_file(tmp_path, 18), steps=2, out=tmp_path / "study")
    assert not (tmp_path / "study").exists()


def test_variants_and_claims_must_fit_together(tmp_path) -> None:
    twice = rates(variants=lambda *_: [Variant(name="a"), Variant(name="a")])
    with pytest.raises(ConfigError, match="give each a name of its own"):
        vitrail.study(twice, data_file(tmp_path), steps=2, out=tmp_path / "study")
    with pytest.raises(ConfigError, match="makes a claim about 'none', which is not a variant"):
        vitrail.study(rates(claims=(Claim(better="none", worse="low"),)), data_file(tmp_path), steps=2)


def test_factors_are_combined_or_varied_one_at_a_time() -> None:
    factors = {"a": {"a1": {"x": 1}, "a2": {"x": 2}}, "b": {"b1": {"y": 1}, "b2": {"y": 2}, "b3": {"y": 3}}}
    assert [one.name for one in product(factors)] == ["a1, b1", "a1, b2", "a1, b3", "a2, b1", "a2, b2", "a2, b3"]
    single = one_at_a_time(factors)
    assert [(one.name, dict(one.settings)) for one in single] == [
        ("base", {"x": 1, "y": 1}),
        ("a2", {"y": 1, "x": 2}),
        ("b2", {"x": 1, "y": 2}),
        ("b3", {"x": 1, "y": 3}),
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name = ", "is not a study in TOML"),
        ('name = "a"\nquestion = "?"\n', "factors is missing"),
        (
            'name = "a"\nquestion = "?"\n' + "".join(f"[factors.f{n}]\na = {{}}\nb = {{}}\n" for n in range(40)),
            "make 1,099,511,627,776 variants, more than the 1,000 that a study may have",
        ),
        ('name = "a"\nquestion = "?"\n[factors.x]\ny = 3\n', "the factor 'x' of .* must have values, each a table"),
        (
            'name = "a"\nquestion = "?"\nfactor = 1\n[factors.x]\ny = {}\n',
            "factor is not a setting; did you mean factors",
        ),
    ],
)
def test_a_file_that_is_not_a_study_is_refused(text, sentence, tmp_path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(vitrail.VitrailError, match=sentence):
        vitrail.study(path, data_file(tmp_path), steps=2, out=tmp_path / "study")


def test_the_list_has_every_study(capsys) -> None:
    assert [study.name for study in vitrail.list_studies()] == list(STUDIES)
    assert main(["studies", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {one["name"] for one in listed} == set(STUDIES)
    assert all(one["runs"] > 0 and one["question"] and one["paper"] for one in listed)


def test_a_study_whose_settings_were_edited_is_not_resumed_with_its_old_cells(tmp_path) -> None:
    data, out = data_file(tmp_path), tmp_path / "study"
    vitrail.study(rates(), data, steps=1, seeds=1, out=out, note=str)
    edited = rates(variants=lambda *_: product({"rate": RATES | {"high": {"schedule.peak": 0.5}}}))
    with pytest.raises(InputError, match=r"settings\.high\.settings\.schedule\.peak is 0\.5 here and 0\.01 there"):
        vitrail.study(edited, data, steps=1, seeds=1, out=out, note=str)


def test_a_study_is_not_resumed_with_other_images(tmp_path) -> None:
    data, out = data_file(tmp_path), tmp_path / "study"
    vitrail.study(rates(), data, steps=1, seeds=1, out=out, note=str)
    with np.load(data) as arrays:
        changed = dict(arrays)
    changed["y_train"] = changed["y_train"][::-1]
    np.savez(data, **changed)
    with pytest.raises(InputError, match="holds another study, so it cannot be resumed: images is"):
        vitrail.study(rates(), data, steps=1, seeds=1, out=out, note=str)


def test_a_study_notices_other_images_of_the_same_names(tmp_path) -> None:
    data, out = data_file(tmp_path), tmp_path / "study"
    vitrail.study(rates(), data, steps=1, seeds=1, out=out, note=str)
    with np.load(data) as arrays:
        changed = dict(arrays)
    changed["x_train"] = 255 - changed["x_train"]
    np.savez(data, **changed)
    with pytest.raises(InputError, match=r"other pixels; bring back the images, or .* resume with `same_data`"):
        vitrail.study(rates(), data, steps=1, seeds=1, out=out, note=str)
    assert len(vitrail.study(rates(), data, steps=1, seeds=1, out=out, same_data=True, note=str).cells) == 2


def test_a_damaged_cell_is_named(tmp_path) -> None:
    data, out = data_file(tmp_path), tmp_path / "study"
    vitrail.study(rates(), data, steps=1, seeds=1, out=out, note=str)
    cell = out / "cells" / "high-0" / "cell.json"
    for content, words in {
        "{": "cannot be read as JSON",
        "[]": "must be a table of settings",
        '{"variant": "low", "seed": 1, "figures": {"accuracy": 1.0}}': "belongs to high, seed 0; remove it",
        '{"variant": "high", "seed": 0, "figures": {"accuracy": NaN}}': "must be finite",
    }.items():
        cell.write_text(content)
        with pytest.raises(VitrailError, match=words) as refused:
            vitrail.study(rates(), data, steps=1, seeds=1, out=out, note=str)
        assert str(cell) in str(refused.value)


def test_a_plan_with_impossible_steps_is_refused_by_name(tmp_path) -> None:
    data, out = data_file(tmp_path), tmp_path / "study"
    vitrail.study(rates(), data, steps=1, seeds=1, out=out, note=str)
    plan = json.loads((out / "study.json").read_text())
    for steps in (-3, 0, 10**30, "1", 1.5):
        (out / "study.json").write_text(json.dumps(plan | {"steps": steps, "minutes": 3.0}))
        with pytest.raises(ConfigError, match=r"the settings in .*study\.json do not make a StudyPlan: .*steps"):
            vitrail.study(rates(), data, minutes=3.0, seeds=1, out=out, note=str)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"a b": {}, "a-b": {}}, "'a b' and 'a-b', whose folders would have the same name"),
        ({"猫": {}, "犬": {}}, "whose folders would have the same name"),
        (
            {"day": {"schedule.peak": datetime.date(2026, 11, 17)}},
            "'day' has a setting that is not a plain, finite value",
        ),
        ({"mine": {"seed": 5}}, "'mine' sets seed, which a study decides for all of its runs"),
        ({"mine": {"steps": 5}}, "'mine' sets steps, which a study decides"),
        ({"mine": {"data.where": "/etc"}}, "'mine' sets data.where, which a study decides"),
        ({"nan": {"schedule.peak": float("nan")}}, "'nan' has a setting that is not a plain, finite value"),
    ],
)
def test_variants_that_a_folder_cannot_hold_are_refused(tmp_path, values, words: str) -> None:
    study = rates(variants=lambda *_: product({"factor": values}), claims=())
    with pytest.raises(ConfigError, match=words):
        vitrail.study(study, data_file(tmp_path), steps=1, seeds=1, out=tmp_path / "study", note=str)
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("content", [b"x = " + b"[" * 100_000, b"x = " + b"9" * 5000, b"\xff", b"x = 1\nx = 2"])
def test_a_file_that_is_not_a_study_is_refused_by_name(tmp_path, content: bytes) -> None:
    (tmp_path / "x.toml").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.toml is not (a study in TOML|text in UTF-8)"):
        vitrail.study(tmp_path / "x.toml", steps=1)


def test_a_name_that_no_page_can_show_does_not_cost_the_study(tmp_path) -> None:
    study = rates(variants=lambda *_: product({"rate": {"\x1b]0;owned\x07": {}, "<script>": {}}}), claims=())
    result = vitrail.study(study, data_file(tmp_path), steps=1, seeds=1, out=tmp_path / "study", note=str)
    page = result.page.read_text()
    assert "\x1b" not in page
    assert "<script>" not in page
