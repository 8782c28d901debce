"""Files: nothing outside the root is read, whatever path a tool names, and none comes from a private network."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from internal.host import files
from internal.host import files as local_files
from tests.support.local_http import MOST, Server, served

INSIDE = b"inside"
OUTSIDE = b"OUTSIDE: must not be read"


@contextmanager
def at_once() -> Iterator[None]:
    """Fail rather than hang: a FIFO that is opened to be read waits for a writer."""

    def give_up(*_: object) -> None:
        raise AssertionError("blocked")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(5)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def root_in(world: Path) -> Path:
    """A root with everything in it that could lead out."""
    outside = world / "outside"
    root = world / "files"
    (root / "sub").mkdir(parents=True)
    outside.mkdir()
    (world / "files-too").mkdir()
    for path in (outside / "secret.txt", world / "secret.txt", world / "files-too" / "secret.txt"):
        path.write_bytes(OUTSIDE)
    for path in (root / "a.txt", root / "sub" / "b.txt", root / "%2e%2e", root / "with space.txt"):
        path.write_bytes(INSIDE)
    (root / "empty").write_bytes(b"")
    (root / "to_inside").symlink_to("sub/b.txt")
    (root / "to_secret").symlink_to(outside / "secret.txt")
    (root / "to_outside").symlink_to(outside)
    (root / "to_itself").symlink_to("to_itself")
    (root / "to_nothing").symlink_to("nothing")
    (root / "to_zero").symlink_to("/dev/zero")
    os.mkfifo(root / "fifo")
    return root


def attempt(location: str, root: Path, **limits: int) -> files.FileBytes | files.FileRefused:
    with at_once():
        try:
            return files.read_local_file(location, root=root, **limits)
        except files.FileRefused as refusal:
            return refusal


def refused(location: str, root: Path, **limits: int) -> bool:
    outcome = attempt(location, root, **limits)
    assert isinstance(outcome, files.FileBytes) or str(root) not in str(outcome)
    assert isinstance(outcome, files.FileBytes) or outcome.__cause__ is None
    return isinstance(outcome, files.FileRefused)


PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16
needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux's /proc")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return root_in(tmp_path_factory.mktemp("world"))


COMPONENTS = [
    *("..", ".", "", "sub", "a.txt", "b.txt", "secret.txt", "outside", "files", "files-too", "to_inside", "to_secret"),
    *("to_outside", "to_itself", "to_nothing", "to_zero", "fifo", "%2e%2e", "%2F", "%00", "\0", "~", "\ud83d", "["),
]
PREFIXES = ["{root}/", "{root}", "file://{root}/", "file:{root}/", "file://localhost{root}/", "file://[", "/", "../"]


@given(
    st.sampled_from(PREFIXES),
    st.lists(st.sampled_from(COMPONENTS), max_size=6) | st.text(max_size=10).map(lambda text: [text]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_no_path_leads_out_of_the_root(root: Path, prefix: str, components: list[str]) -> None:
    location = prefix.format(root=root) + "/".join(components)
    outcome = attempt(location, root)

    assert isinstance(outcome, files.FileRefused) or outcome.data in {INSIDE, b""}


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("{root}/a.txt", "a.txt"),
        ("{root}/sub/../a.txt", "a.txt"),
        ("{root}/../files/a.txt", "a.txt"),
        ("file://{root}/a.txt", "a.txt"),
        ("file:{root}/with%20space.txt", "with space.txt"),
        ("{root}/%2e%2e", "%2e%2e"),
        ("{root}/to_inside", "b.txt"),
    ],
)
def test_a_file_whose_real_path_is_under_the_root_is_read(root: Path, location: str, name: str) -> None:
    file = files.read_local_file(location.format(root=root), root=root)

    assert (file.data, file.filename, file.mime_type) == (INSIDE, name, "text/plain")


REFUSED = [
    *("", "{root}", "{root}/sub", "{root}/nothing", "{root}/../outside/secret.txt", "{root}-too/secret.txt"),
    *("{root}/to_secret", "{root}/to_outside/secret.txt", "{root}/to_itself", "{root}/to_zero", "{root}/fifo"),
    *("{root}/a.txt\0", "file://{root}/%2e%2e/secret.txt", "file://{root}/a.txt%00.png", "file://[::1{root}/a.txt"),
    *("/etc/passwd", "/dev/zero", "a.txt", "C:\\files\\a.txt", "\ud83d"),
]


@pytest.mark.parametrize("location", REFUSED)
def test_everything_else_is_refused_at_once(root: Path, location: str) -> None:
    assert refused(location.format(root=root), root)


def test_a_missing_root_has_no_files_a_device_is_none_and_a_root_may_be_a_link(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)

    assert refused(f"{root}/a.txt", root / "nothing")
    assert refused("/dev/zero", Path("/dev"))
    assert files.read_local_file(f"{tmp_path}/link/a.txt", root=tmp_path / "link").data == INSIDE


@pytest.mark.parametrize("size", [0, files.MAX_LOCAL_FILE_BYTES, files.MAX_LOCAL_FILE_BYTES + 1])
def test_five_mebibytes_are_the_most(tmp_path: Path, size: int) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(size)

    assert refused(f"{tmp_path}/big", tmp_path) is (size > files.MAX_LOCAL_FILE_BYTES == 5_242_880)


@needs_proc
def test_a_file_that_is_larger_than_its_size_or_cannot_be_read_is_refused() -> None:
    assert refused("/proc/self/status", Path("/proc/self"), limit=10)
    assert not refused("/proc/self/status", Path("/proc/self"))
    assert refused("/proc/self/mem", Path("/proc/self"))


def test_a_path_that_changed_after_it_was_checked_is_caught_on_the_open_file(root: Path) -> None:
    with (root / "to_secret").open("rb") as file, pytest.raises(files.FileRefused):
        local_files._read_checked(file.fileno(), str(root), files.MAX_LOCAL_FILE_BYTES)


def test_the_plugins_own_root_is_slash_files() -> None:
    assert Path("/files") == local_files.FILES_ROOT
    with pytest.raises(files.FileRefused, match="at most 5 MiB under /files"):
        files.read_local_file(__file__)


LOCAL = ["/files/a.txt", "a.txt", "", "FILE:///files/a.txt", "C:\\a.txt", "//host/share", "http://[broken/a"]
NOT_LOCAL = ["http://host.test/a.png", "HTTPS://host.test/a.png", "data:image/png;base64,AA=="]


def test_a_location_without_an_addresss_scheme_is_local() -> None:
    assert [location for location in LOCAL + NOT_LOCAL if files.is_local_path(location)] == LOCAL


TYPES = {
    PNG: "image/png",
    b"%PDF-1.7\n": "application/pdf",
    b"": "text/plain",
    "日本語".encode(): "text/plain",
    b"a\0b": "application/octet-stream",
    b"\xff\xfe\xfd": "application/octet-stream",
}


def test_the_type_is_what_the_bytes_show_whatever_the_name_says(tmp_path: Path) -> None:
    assert {data: files.sniff_mime_type(data) for data in TYPES} == TYPES
    name = "ä 日本 %20.txt"
    (tmp_path / name).write_bytes(PNG)

    file = files.read_local_file(f"file://{quote(str(tmp_path))}/{quote(name)}", root=tmp_path)

    assert (file.filename, file.mime_type) == (name, "image/png")


PUBLIC = "http://93.184.215.14"


@pytest.fixture
def server() -> Iterator[str]:
    Server.asked = []
    with served(Server) as address:
        yield address


@pytest.fixture
def asked(server: str) -> list[str]:
    """What was asked of the server: whole addresses where it was the proxy."""
    assert server
    return Server.asked


@pytest.fixture
def proxy(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """As Dify's docker-compose sets its proxy for all services."""
    monkeypatch.setenv("SSRF_PROXY_HTTP_URL", server)
    monkeypatch.setenv("SSRF_PROXY_HTTPS_URL", server)
    return server


PRIVATE = ["127.0.0.1:9", "localhost:9", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:127.0.0.1]", "2130706433"]


@pytest.mark.usefixtures("proxy")
@pytest.mark.parametrize("host", PRIVATE)
def test_a_redirect_into_a_private_network_is_not_followed(asked: list[str], host: str) -> None:
    address = f"{PUBLIC}/to/http://{host}/b"
    with pytest.raises(files.FileUnavailable, match="leads into a private network"):
        files.fetch_file(address, 0, MOST)

    assert asked == [address]


def test_other_redirects_are_followed(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert files.fetch_file(f"{server}/to//b", 0, MOST) == b"content"
    assert files.fetch_file(f"{server}/to/{server.replace('127.0.0.1', 'localhost')}/b", 0, MOST) == b"content"
    monkeypatch.setenv("SSRF_PROXY_ALL_URL", server)
    assert files.fetch_file(f"{PUBLIC}/to/http://93.184.215.15/b", 0, MOST) == b"content"


def network(*answers: list[str]) -> tuple[files.Network, list[str]]:
    """Hosts whose addresses are these, look-up by look-up; 127.0.0.2 is the public one. Also which were looked up."""
    looked_up = list[str]()
    left = list(answers)

    def resolve(host: str) -> list[files.IPAddress]:
        looked_up.append(host)
        return list(map(ip_address, left.pop(0)))

    return files.Network(resolve, lambda address: str(address) != "127.0.0.2"), looked_up


@pytest.fixture
def everywhere() -> Iterator[int]:
    """The port of a server that answers at all addresses of this computer."""
    Server.asked = []
    with served(Server, "0.0.0.0") as address:  # noqa: S104 - 127.0.0.2 is the public host
        yield int(address.rpartition(":")[2])


def test_a_first_host_with_a_public_and_a_private_address_counts_as_what_was_connected_to(everywhere: int) -> None:
    found, _ = network(["127.0.0.2", "127.0.0.1"], ["127.0.0.1"])

    with pytest.raises(files.FileUnavailable, match="leads into a private network"):
        files.fetch_file(f"http://a.example:{everywhere}/to/http://b.example:{everywhere}/secret", 0, MOST, found)

    assert Server.asked == [f"/to/http://b.example:{everywhere}/secret"]


def test_another_answer_after_a_host_was_judged_changes_nothing(everywhere: int) -> None:
    found, looked_up = network(["127.0.0.2"], ["127.0.0.2"], ["127.0.0.1"])

    data = files.fetch_file(f"http://a.example:{everywhere}/to/http://b.example:{everywhere}/b", 0, MOST, found)

    assert data == b"content"
    assert looked_up == ["a.example", "b.example"]


def test_no_host_behind_a_public_one_may_be_private(everywhere: int) -> None:
    found, looked_up = network(["127.0.0.1"], ["127.0.0.2"], ["127.0.0.1"])
    hops = [f"http://{name}.example:{everywhere}" for name in "abc"]

    with pytest.raises(files.FileUnavailable, match="leads into a private network"):
        files.fetch_file(f"{hops[0]}/to/{hops[1]}/to/{hops[2]}/x", 0, MOST, found)

    assert looked_up == ["a.example", "b.example", "c.example"]


def test_the_next_address_of_a_host_is_tried_and_a_private_host_may_lead_to_a_private_one(everywhere: int) -> None:
    found, _ = network(["::1", "127.0.0.1"], ["127.0.0.3"])

    data = files.fetch_file(f"http://a.example:{everywhere}/to/http://b.example:{everywhere}/b", 0, MOST, found)

    assert data == b"content"


@pytest.mark.usefixtures("proxy")
def test_behind_a_proxy_a_host_with_both_counts_as_public_before_and_as_private_behind_a_redirect(
    asked: list[str],
) -> None:
    found, _ = network(["127.0.0.1", "127.0.0.2"], ["127.0.0.2", "127.0.0.1"])

    with pytest.raises(files.FileUnavailable, match="leads into a private network"):
        files.fetch_file("http://a.example/to/http://b.example/secret", 0, MOST, found)

    assert asked == ["http://a.example/to/http://b.example/secret"]


def test_the_usual_proxy_of_the_environment_is_asked_unless_the_host_is_excepted(
    server: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", server)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    files.fetch_file("http://a.example/b", 0, MOST)
    files.fetch_file(f"{server}/c", 0, MOST)

    assert asked == ["http://a.example/b", "/c"]


@pytest.mark.parametrize(
    ("address", "private"),
    [
        *(("8.8.8.8", False), ("10.1.2.3", True), ("100.64.0.1", True), ("0.1.2.3", True), ("224.0.0.1", True)),
        *(("2606:4700::1", False), ("::1", True), ("fd00::1", True), ("fe80::1", True), ("fec0::1", True)),
        *(("::ffff:10.0.0.1", True), ("::ffff:8.8.8.8", False), ("::127.0.0.1", True), ("ff02::1", True)),
        *(("64:ff9b::7f00:1", True), ("64:ff9b::808:808", False), ("64:ff9b:1::808:808", True)),
        *(("2002:7f00:1::", True), ("2002:a00:1::1", True), ("2002:808:808::1", False), ("2001:0:7f00:1::", True)),
    ],
)
def test_an_address_is_as_private_as_the_one_that_it_leads_to(address: str, *, private: bool) -> None:
    assert files.is_private(ip_address(address)) is private


def test_redirects_without_end_are_not_followed(server: str, asked: list[str]) -> None:
    with pytest.raises(files.FileUnavailable, match="could not be fetched"):
        files.fetch_file(f"{server}{'/to/' * 50}", 0, MOST)

    assert len(asked) == 6


def test_difys_own_files_need_no_proxy_and_all_others_do(
    proxy: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERNAL_FILES_URL", f"{proxy}/files-prefix")

    files.fetch_file(f"{proxy}/files/a", 0, MOST)
    files.fetch_file("http://127.0.0.1:9/b", 0, MOST)

    assert asked == ["/files/a", "http://127.0.0.1:9/b"]


def test_a_packed_file_is_not_unpacked(server: str) -> None:
    with pytest.raises(files.FileUnavailable, match="its server sends it compressed"):
        files.fetch_file(f"{server}/packed", 0, MOST)
