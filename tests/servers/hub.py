"""A small server on loopback that speaks as much of the Hub as a checkpoint's reader needs."""

import hashlib
import http.server
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"

_PATH = re.compile(r"/([\w.-]+/[\w.-]+)/resolve/([^/]+)/(.+)")


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came in."""

    method: str
    path: str
    range: str | None
    token: str | None
    sent: int
    """Bytes of the answer's body."""


@dataclass(slots=True)
class Hub:
    """What the server has, how it behaves, and what it was asked."""

    folders: dict[str, Path] = field(default_factory=dict)
    """Repository -> the folder with its files."""
    gated: set[str] = field(default_factory=set)
    private: dict[str, str] = field(default_factory=dict)
    """Repository -> the token that may read it."""
    tokens: set[str] = field(default_factory=set)
    """Tokens that are valid at all."""
    elsewhere: bool = False
    """Whether files are served by a redirection, as large ones are."""
    cut: str = ""
    """Name of a file whose answers end in the middle."""
    slow: str = ""
    """Name of a file whose answers come too late."""
    whole: str = ""
    """Name of a file that is sent whole, whatever range was asked for."""
    failing: int = 0
    """Status of every answer, where it is not 0."""
    log: list[Request] = field(default_factory=list)
    url: str = ""

    def asked(self, name: str) -> list[Request]:
        """Return the requests for the content of one file."""
        return [r for r in self.log if r.method == "GET" and r.path.endswith(f"/{name}")]


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Run the server while the block runs."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(hub: Hub) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Keep stderr to the program under test."""

        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def _answer(self) -> None:
            refusal = self._refusal()
            if refusal is not None:
                self._send(refusal[0], {"X-Error-Code": refusal[1], "X-Error-Message": refusal[2]})
                return
            found = _PATH.fullmatch(self.path.removeprefix("/elsewhere"))
            name = found[3] if found else ""
            file = hub.folders[found[1]] / name if found else None
            if file is None or not file.is_file():
                self._send(404, {"X-Error-Code": "EntryNotFound"})
            elif hub.elsewhere and not self.path.startswith("/elsewhere"):
                self._send(302, {"Location": f"{hub.url}/elsewhere{self.path}", **_facts(file)})
            else:
                self._send_file(file)

        def _refusal(self) -> tuple[int, str, str] | None:
            if hub.failing:
                return hub.failing, "", "out of order"
            found = _PATH.fullmatch(self.path.removeprefix("/elsewhere"))
            repository = found[1] if found else ""
            token = self._token()
            if token is not None and token not in hub.tokens:
                return 401, "", "Invalid credentials in Authorization header"
            hidden = hub.private.get(repository)
            if repository not in hub.folders or (hidden is not None and hidden != token):
                return 404 if token else 401, "RepoNotFound", "Repository not found"
            if found and found[2] not in {"main", COMMIT}:
                return 404, "RevisionNotFound", "Invalid rev id"
            if repository in hub.gated:
                return 403 if token else 401, "GatedRepo", "Access to model is restricted"
            return None

        def _token(self) -> str | None:
            header = self.headers.get("Authorization")
            return header.removeprefix("Bearer ") if header else None

        def _send_file(self, file: Path) -> None:
            content, status, headers = file.read_bytes(), 200, _facts(file)
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if asked and file.name != hub.whole:
                start, stop = int(asked[1]), min(int(asked[2]) + 1, len(content))
                headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(content)}"
                content, status = content[start:stop], 206
            if file.name == hub.slow:
                time.sleep(0.6)
            self._send(status, headers, content, cut=file.name == hub.cut)

        def _send(
            self, status: int, headers: dict[str, str], content: bytes = b"", *, cut: bool = False
        ) -> None:
            body = b"" if self.command == "HEAD" else content
            if "/resolve/" in self.path:  # huggingface_hub asks for things of its own too
                hub.log.append(
                    Request(
                        method=self.command,
                        path=self.path,
                        range=self.headers.get("Range"),
                        token=self._token(),
                        sent=len(body),
                    )
                )
            self.send_response(status)
            self.send_header("X-Repo-Commit", COMMIT)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if cut else body)
            if cut:
                self.wfile.flush()
                self.connection.close()
                self.close_connection = True

    return Handler


def _facts(file: Path) -> dict[str, str]:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return {"ETag": f'"{digest}"', "Accept-Ranges": "bytes"}
