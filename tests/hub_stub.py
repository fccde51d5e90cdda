"""A server on the loopback that speaks those endpoints of the Hugging Face Hub that models need."""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "c" * 40


class Hub(ThreadingHTTPServer):
    """repositories: their files by name. tokens: those that may write. requests: what was asked."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories = {}
        self.private = set()
        self.tokens = {"hf_valid"}
        self.requests = []

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *arguments):
        pass

    def answer(self, status, content=b"", **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.server.requests.append(f"{self.command} {self.path}")
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status, code):
        self.answer(status, {"error": code}, X_Error_Code=code, X_Error_Message=code)

    @property
    def may_write(self):
        return self.headers.get("Authorization", "").removeprefix("Bearer ") in self.server.tokens

    def do_GET(self):
        match = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.path)
        if match is None:
            return self.refuse(404, "NotImplemented")
        repository, revision, name = match.groups()
        files = self.server.repositories.get(repository)
        if files is None:
            return self.refuse(404, "RepoNotFound")
        if revision not in ("main", COMMIT):
            return self.refuse(404, "RevisionNotFound")
        if name not in files:
            return self.refuse(404, "EntryNotFound")
        tag = hashlib.sha256(files[name]).hexdigest()
        return self.answer(200, files[name], ETag=f'"{tag}"', X_Repo_Commit=COMMIT)

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.may_write:
            return self.refuse(401, "Unauthorized")
        if self.path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            if asked.get("type") == "space":
                assert asked["sdk"] == "docker"
                name = f"spaces/{name}"
            self.server.repositories.setdefault(name, {})
            if asked.get("private") or asked.get("visibility") == "private":
                self.server.private.add(name)
            return self.answer(200, {"url": f"{self.server.address}/{name}", "name": name})
        if self.path == "/api/validate-yaml":
            return self.answer(200, {"errors": [], "warnings": []})
        match = re.fullmatch(
            r"/api/(?:models/|(spaces/))([^/]+/[^/]+)/(preupload|commit)/main", self.path
        )
        if match is None:
            return self.refuse(404, "NotImplemented")
        name = (match[1] or "") + match[2]
        if match[3] == "preupload":
            names = [file["path"] for file in json.loads(body)["files"]]
            modes = {"uploadMode": "regular", "shouldIgnore": False, "oid": None}
            return self.answer(200, {"files": [{"path": name, **modes} for name in names]})
        for line in body.decode().splitlines():
            entry = json.loads(line)
            if entry["key"] == "file":
                content = base64.b64decode(entry["value"]["content"])
                self.server.repositories[name][entry["value"]["path"]] = content
        url = f"{self.server.address}/{name}/commit/{COMMIT}"
        return self.answer(200, {"commitUrl": url, "commitOid": COMMIT, "success": True})


@contextmanager
def serve():
    """A hub that answers until the block ends."""
    hub = Hub()
    thread = threading.Thread(target=hub.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        hub.shutdown()
        hub.server_close()
        thread.join()
