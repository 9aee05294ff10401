"""What a server counts, per model and as metrics. Only these tests ask the model `counted`."""

import re
import time
import urllib.request

import numpy as np
import pytest

ROWS = np.zeros((3, 4), np.float32)
DURATIONS = ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output")


def statistics(api, model="counted", version="") -> dict:
    [answer] = api.json("get_inference_statistics", model, version)["model_stats"]
    return answer


def count(part: dict, *path: str) -> int:
    for key in path[:-1]:
        part = part[key]
    return int(part.get(path[-1], 0))


def assert_grows(read, change: dict, action):
    """The counts that `read` gives grow by `change`, and by nothing else, when `action` is done.

    A server may answer first and count then, so that a count is waited for.
    """
    before = read()
    action()
    until = time.monotonic() + 30
    while (grown := {key: read()[key] - before[key] for key in change}) != change and time.monotonic() < until:
        time.sleep(0.01)
    assert grown == change


def counts(api, model) -> dict[str, int]:
    answer = statistics(api, model)
    parts = {part: count(answer, "inference_stats", part, "count") for part in DURATIONS}
    return parts | {key: count(answer, key) for key in ("inference_count", "execution_count")}


def test_a_request_of_three_rows_is_one_execution_and_three_inferences(api):
    change = dict.fromkeys(DURATIONS, 1) | {"fail": 0, "inference_count": 3, "execution_count": 1}
    assert_grows(lambda: counts(api, "counted"), change, lambda: api.infer("counted", ROWS))


def test_a_failed_execution_is_counted_as_failed(api):
    change = {"fail": 1, "success": 0, "inference_count": 0}
    wrong = np.array([[77]])
    assert_grows(lambda: counts(api, "lookup"), change, lambda: api.failure(api.infer, "lookup", wrong))


def test_times_are_counted(api):
    api.infer("counted", ROWS)
    answer = statistics(api)
    assert count(answer, "last_inference") > 0
    for part in ("success", "compute_infer"):
        assert count(answer, "inference_stats", part, "ns") > 0


def test_every_duration_is_there_and_the_version_is_a_number(api):
    answer = statistics(api)
    assert answer["name"] == "counted" and answer["version"] == "1"
    assert set(DURATIONS) <= set(answer["inference_stats"])
    computed = {count(answer, "inference_stats", part, "count") for part in DURATIONS if part.startswith("compute")}
    assert len(computed) == 1


def test_executions_are_counted_by_batch_size(api):
    api.infer("counted", ROWS)
    sizes = {int(batch["batch_size"]): batch for batch in statistics(api)["batch_stats"]}
    assert count(sizes[3], "compute_infer", "count") >= 1
    assert count(sizes[3], "compute_infer", "ns") > 0


def test_each_version_is_counted_on_its_own(api):
    both = api.json("get_inference_statistics", "versioned")["model_stats"]
    assert [entry["version"] for entry in both] == ["1", "3"]
    assert statistics(api, "versioned", "3")["version"] == "3"


def test_without_a_name_all_models_are_counted(api):
    names = [entry["name"] for entry in api.json("get_inference_statistics")["model_stats"]]
    assert {"counted", "add_sub", "versioned"} <= set(names)


def test_there_are_no_statistics_of_an_unknown_model(api):
    assert "nowhere" in api.failure(api.client.get_inference_statistics, "nowhere").message


@pytest.mark.triton_differs(reason="Triton says invalid here, and not found everywhere else")
def test_statistics_of_an_unknown_model_are_not_found(api):
    assert api.failure(api.client.get_inference_statistics, "nowhere").kind == "unknown"


def metrics(server) -> dict[str, float]:
    """The samples of the model `counted` by their exact names, summed over other labels."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics") as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        text = answer.read().decode()
    samples: dict[str, float] = {}
    # Not by a library: those add the `_total` of OpenMetrics to the names of counters, which dashboards do not ask for.
    for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", text, re.MULTILINE):
        if 'model="counted"' in labels:
            samples[name] = samples.get(name, 0) + float(value)
    return samples


COUNTERS = {
    "nv_inference_request_success": 1,
    "nv_inference_count": 3,
    "nv_inference_exec_count": 1,
    "nv_inference_request_failure": 0,
}
PRESENT = (
    "nv_inference_pending_request_count",
    "nv_inference_request_duration_us",
    "nv_inference_queue_duration_us",
    "nv_inference_compute_input_duration_us",
    "nv_inference_compute_infer_duration_us",
    "nv_inference_compute_output_duration_us",
)


def test_the_metrics_that_dashboards_read_exist_and_count(server, api):
    api.infer("counted", ROWS)
    assert_grows(lambda: metrics(server), COUNTERS, lambda: api.infer("counted", ROWS))
    assert set(PRESENT) <= set(metrics(server))
