"""Which server the tests ask, and what a test may say about that.

pytest tests/clients --server downbeat      (or triton)
"""

import pytest
from servers import SERVERS

MARKERS = {
    "downbeat_only(reason)": "about something that Triton does not have; not run there",
    "triton_differs(reason)": "Downbeat answers differently on purpose; the test must fail on Triton",
}


def pytest_addoption(parser):
    parser.addoption("--server", choices=sorted(SERVERS), default="downbeat", help="the server to test")


def pytest_configure(config):
    for marker, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{marker}: {meaning}")


def pytest_ignore_collect(collection_path, config):
    # tritonclient and kserve register the same protobuf names: one process can import only one of them.
    if collection_path.name == "test_kserve.py":
        return not any("test_kserve.py" in argument for argument in config.args)
    return None


def pytest_collection_modifyitems(config, items):
    if config.getoption("--server") != "triton":
        return
    for item in items:
        if marker := item.get_closest_marker("downbeat_only"):
            item.add_marker(pytest.mark.skip(reason=marker.kwargs["reason"]))
        if marker := item.get_closest_marker("triton_differs"):
            item.add_marker(pytest.mark.xfail(reason=marker.kwargs["reason"], strict=True))


@pytest.fixture(scope="session")
def server_class(request):
    return SERVERS[request.config.getoption("--server")]


@pytest.fixture(scope="session")
def server(server_class, tmp_path_factory):
    """The server with all test models, shared by all tests."""
    with server_class(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(params=["http", "grpc"])
def api(request, server):
    """A client of the server, over each protocol in turn."""
    from protocols import Protocol

    protocol = Protocol(request.param, getattr(server, request.param))
    yield protocol
    protocol.client.close()
