import asyncio

import numpy as np
import pytest
import torch

import vitrail
from tests.serving.making import LABELS, in_base64, parts, photo
from vitrail.serving.answers import Answer


def test_answers_are_those_of_predict_with_the_digest_and_the_timings(bench, tiny_file) -> None:
    images = [photo(seed, form=form) for seed, form in enumerate(("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP"))]

    async def scenario(client, _):
        return await client.post("/v1/predict?top=3", files=parts(*images))

    answer = bench.run(scenario)
    assert answer.status_code == 200
    content = answer.json()
    wanted = vitrail.predict(tiny_file, images, top=3)
    for result, prediction in zip(content["results"], wanted, strict=True):
        assert [entry["label"] for entry in result["top"]] == [label for label, _ in prediction.top]
        np.testing.assert_allclose(
            [entry["probability"] for entry in result["top"]], [share for _, share in prediction.top], atol=1e-6
        )
        assert (result["height"], result["width"]) == (30, 40)
    assert content["model"]["digest"] == vitrail.show(tiny_file).digest
    assert set(content["timings"]) == {"decode_ms", "compute_ms", "total_ms", "batch"}
    Answer.model_validate(content)


def test_json_and_multipart_give_the_same(bench) -> None:
    image = photo()

    async def scenario(client, _):
        body = {"images": [in_base64(image), {"name": "b.png", "data": f"data:image/png;base64,{in_base64(image)}"}]}
        return await client.post("/v1/predict", files=parts(image)), await client.post("/v1/predict", json=body)

    one, two = (answer.json()["results"] for answer in bench.run(scenario))
    for result in two:
        assert [entry["label"] for entry in result["top"]] == [entry["label"] for entry in one[0]["top"]]
        assert result["top"][0]["probability"] == pytest.approx(one[0]["top"][0]["probability"], abs=1e-6)
    assert [result["name"] for result in two] == ["image 0", "b.png"]


def test_features_are_those_of_the_engine(bench, tiny_file) -> None:
    image = photo()

    async def scenario(client, _):
        return await client.post("/v1/predict?features=true", files=parts(image, photo(1)))

    results = bench.run(scenario).json()["results"]
    classifier = vitrail.Classifier.load(tiny_file)
    wanted = classifier.engine.features(torch.stack([classifier.prepare(image), classifier.prepare(photo(1))]))
    np.testing.assert_allclose([result["features"] for result in results], wanted.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method", ["attention", "rollout", "gradient-attention", "integrated-gradients", "occlusion"])
def test_maps_are_those_of_explain(bench, tiny_file, method) -> None:
    image = photo()

    async def scenario(client, _):
        return await client.post(f"/v1/predict?explain={method}&class=dog", files=parts(image))

    heat = bench.run(scenario).json()["results"][0]["explanation"]
    wanted = vitrail.explain(tiny_file, [image], method=method, label="dog", points=0)[0].maps[0]
    np.testing.assert_allclose(heat["values"], wanted.values, rtol=1e-4, atol=1e-6)
    assert heat["method"] == method
    assert heat["label"] == (None if method in ("attention", "rollout") else "dog")
    assert heat["signed"] == (method in ("integrated-gradients", "occlusion"))


def test_a_patch_has_the_row_of_attention_that_is_its_own(bench, tiny_file) -> None:
    image = photo()

    async def scenario(client, _):
        return await client.post("/v1/predict?explain=attention&patch=7&layer=0&head=2", files=parts(image))

    heat = bench.run(scenario).json()["results"][0]["explanation"]
    classifier = vitrail.Classifier.load(tiny_file)
    inputs = classifier.engine.inputs(classifier.prepare(image)[None])
    attention = vitrail.load(tiny_file).eval().trace(inputs, attention=[0]).attention[0]
    row = attention[0, 2, 1 + 7, 1:].reshape(3, 4)  # behind the class token
    np.testing.assert_allclose(heat["values"], row.detach().numpy(), rtol=1e-4)
    assert heat["patch"] == 7


def test_features_and_a_map_come_together(bench) -> None:
    async def scenario(client, _):
        return await client.post("/v1/predict?explain=rollout&features=1", files=parts(photo()))

    (result,) = bench.run(scenario).json()["results"]
    assert len(result["features"]) == 32
    assert np.shape(result["explanation"]["values"]) == (3, 4)


def test_one_bad_image_fails_alone(bench) -> None:
    good = photo()

    async def scenario(client, _):
        return await client.post("/v1/predict", files=parts(good, b"not an image", good[:-40], good))

    answer = bench.run(scenario)
    results = answer.json()["results"]
    assert answer.status_code == 200
    assert [result.get("error", {}).get("status") for result in results] == [None, 415, 422, None]
    assert results[0]["top"][0]["label"] == results[3]["top"][0]["label"]


def test_images_of_one_pixel_are_harmless(bench) -> None:
    async def scenario(client, _):
        return await client.post("/v1/predict", files=parts(photo(size=(1, 1)), photo(size=(1, 500))))

    assert bench.run(scenario).status_code == 200


def test_models_are_chosen_by_path_and_by_header(bench, tiny_file, tmp_path) -> None:
    from tests.serving.making import save_model

    other = save_model(tmp_path / "other.safetensors", seed=5)

    async def scenario(client, _):
        names = (await client.get("/v1/models")).json()["models"]
        digests = [
            (await client.post(path, files=parts(photo()), headers=headers)).json()["model"]["name"]
            for path, headers in (
                ("/v1/predict", {}),
                ("/v1/predict", {"x-model": "b"}),
                ("/v1/models/b/predict", {}),
                ("/v1/models/a/predict", {}),
            )
        ]
        missing = await client.post("/v1/models/c/predict", files=parts(photo()))
        return names, digests, missing, (await client.get("/v1/models/b")).json()["digest"]

    names, answered, missing, digest = bench.run(scenario, models={"a": tiny_file, "b": other})
    assert names == ["a", "b"]
    assert answered == ["a", "b", "b", "a"]
    assert missing.status_code == 404
    assert digest == vitrail.show(other).digest


def test_facts_and_labels(bench) -> None:
    async def scenario(client, _):
        return await client.get("/v1/model"), await client.get("/v1/labels"), await client.get("/healthz")

    model, labels, alive = bench.run(scenario)
    assert model.json()["preprocessing"]["image_size"] == [12, 16]
    assert model.json()["grid"] == [3, 4]
    assert labels.json() == {"labels": list(LABELS)}
    assert alive.json() == {"status": "alive"}


def test_many_requests_share_batches_and_none_is_swapped(bench, tiny_file) -> None:
    images = [photo(seed) for seed in range(24)]
    bench.member.pause = 0.002

    async def scenario(client, _):
        answers = await asyncio.gather(*(client.post("/v1/predict?top=7", files=parts(image)) for image in images))
        return [answer.json() for answer in answers]

    contents = bench.run(scenario)
    wanted = vitrail.predict(tiny_file, images, top=7)
    for content, prediction in zip(contents, wanted, strict=True):
        shares = {entry["label"]: entry["probability"] for entry in content["results"][0]["top"]}
        np.testing.assert_allclose(
            [shares[label] for label, _ in prediction.top], [s for _, s in prediction.top], atol=1e-6
        )
    assert max(content["timings"]["batch"] for content in contents) == 4
