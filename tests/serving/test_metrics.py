from prometheus_client.parser import text_string_to_metric_families

from tests.serving.making import parts, photo
from vitrail.serving.metrics import Counter, Histogram, exposition


def families(text):
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_prometheus_reads_what_we_write() -> None:
    counter, histogram = Counter("requests_total", "Requests."), Histogram("seconds", "Time.", (0.1, 1.0))
    counter.add(path='a"b\\c\nd', status="200")
    counter.add(2.0, path="x", status="500")
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.add(value)
    read = families(exposition([counter, histogram]))
    samples = {(sample.labels["path"], sample.labels["status"]): sample.value for sample in read["requests"].samples}
    assert samples == {('a"b\\c\nd', "200"): 1.0, ("x", "500"): 2.0}
    buckets = {sample.labels.get("le", sample.name): sample.value for sample in read["seconds"].samples}
    assert buckets == {"0.1": 2.0, "1": 3.0, "+Inf": 4.0, "seconds_sum": 7.65, "seconds_count": 4.0}
    assert counter.total(status="500") == 2.0


def test_the_server_counts_requests_images_and_batches(bench) -> None:
    async def scenario(client, _):
        await client.post("/v1/predict", files=parts(photo(), photo(1), b"x"))
        await client.get("/nowhere")
        return await client.get("/metrics")

    read = families(bench.run(scenario).text)
    requests = {(s.labels["path"], s.labels["status"]): s.value for s in read["vitrail_requests"].samples}
    assert requests == {("/v1/predict", "200"): 1.0, ("other", "404"): 1.0}
    assert {s.labels["outcome"]: s.value for s in read["vitrail_images"].samples} == {"ok": 2.0, "415": 1.0}
    counts = {s.name: s.value for s in read["vitrail_batch_images"].samples if not s.labels}
    assert counts["vitrail_batch_images_sum"] == 2.0
    (rate,) = read["vitrail_images_per_second"].samples
    assert rate.value == 2 / 30
    assert {
        "vitrail_queue_images",
        "vitrail_workers_ready",
        "vitrail_worker_restarts",
        "vitrail_request_seconds",
    } <= set(read)
    (model,) = read["vitrail_model_info"].samples
    assert model.labels["name"] == "tiny"
