"""A process of ``bags serve``, as a client sees it; what it answers with, for this process."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPSConnection
from typing import Any

from bagbasis.jobs.commands.serving.requests import Served, answer_request
from tests.jobs.running import CONFIGS

__all__ = ["Served", "Server", "answer_request", "serving"]


class Server:
    """A process of ``bags serve``, and what clients send to it."""

    certificate = None

    def __init__(self, *args: Any):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bagbasis.jobs", "serve", *map(str, args), "--port=0", "--json"],
            cwd=CONFIGS.parent,
            stdout=subprocess.PIPE,
            text=True,
        )
        lines = iter(self.process.stdout.readline, "}\n")
        message = json.loads("".join(lines) + "}")
        self.scheme, _, self.place = message["url"].partition("://")
        with open(message["token_file"], encoding="ascii") as file:
            self.token = file.read().strip()

    def connection(self):
        if self.scheme == "http":
            return HTTPConnection(self.place)
        context = ssl.create_default_context(cadata=self.certificate)
        context.check_hostname = False
        return HTTPSConnection(self.place, context=context)

    def ask(self, path, body=None, connection=None, **headers):
        """Status and JSON of an answer."""
        connection = connection or self.connection()
        method = "GET" if body is None else "POST"
        sent = {"Authorization": f"Bearer {self.token}"} | headers
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


@contextmanager
def serving(*args: Any) -> Iterator[Server]:
    server = Server(*args)
    try:
        yield server
    finally:
        server.process.send_signal(signal.SIGINT)
        server.process.communicate()
