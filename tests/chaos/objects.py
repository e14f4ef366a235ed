"""Jobs among the objects of moto's server, behind a proxy that kills its client or fails it."""

from __future__ import annotations

import asyncio
import itertools
import re
import shutil
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import fsspec
import icechunk  # noqa: F401 (so that no child has to import it)
import numpy as np
import s3fs  # noqa: F401 (likewise)
from botocore.loaders import create_loader

from bagbasis import BagbasisError
from tests.chaos.accounting import Mixed, Tally
from tests.chaos.children import Child, End, ask, run, tell
from tests.chaos.contents import Place
from tests.chaos.jobs import JOBS, Job
from tests.chaos.kills import Ground, Killed
from tests.object_stores.moto_server import REGION, OneAtATime, serving

BUCKET = "chaos"
# what may happen to any request; to one that reads; and to one that reads an object
FAULTS = ("drop", "lose", "delay", "repeat", "truncate", "500", "503", "404")
OF_READS = ("stale", "page")
OF_OBJECTS = ("flip", "shorten")
FAILED = ("append", "fit", "predict-zarr", "promote", "retrain")  # jobs that the network fails
SLOW = ("fit", "refit", "predict-zarr", "tune", "promote", "retrain")  # several seconds for a kill
SHARES = (0.02, 0.06, 0.2)  # of the requests that it fails
N_LOOKS, SHARE_OF_LOOKS = 8, 0.3  # at what a job has made, and of the requests that fail meanwhile
DELAY = 0.4  # seconds
WRITING = (b"PUT", b"POST", b"DELETE")
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
EXPECTS = re.compile(rb"\r\nexpect: *100-continue", re.IGNORECASE)
CONNECTION = re.compile(rb"\r\nconnection: *[^\r]*", re.IGNORECASE)
LISTING = re.compile(rb"^(GET [^ ]*[?&]list-type=2)")
PAGE_KEYS = b"3"  # of a listing that has to come in pages
CODES = {
    "500": (b"500 Internal Server Error", b"InternalError"),
    "503": (b"503 Slow Down", b"SlowDown"),
    "404": (b"404 Not Found", b"NoSuchBucket"),
}
PORTAL = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Welcome</body></html>"


@dataclass(frozen=True)
class Plan:
    """What a proxy does besides passing requests on.

    Attributes
    ----------
    kill_at : int, optional
        The client is killed at this writing request, from 0.
    after : bool
        Whether the request is carried out before.
    share : float
        Fraction of the requests that meet one of `FAULTS`, drawn by the seed.
    """

    kill_at: int | None = None
    after: bool = False
    share: float = 0.0
    seed: int = 0


class Proxy:
    """A TCP proxy of HTTP: every request has a connection of its own to the server.

    drop: the request gets lost; lose: its answer does; delay: it takes a while; repeat: it is
    sent twice, and the second answer counts; truncate: half of the answer comes; 500, 503, 404:
    the server does nothing and answers so; stale: the first answer to this request comes again;
    page: the page of a captive portal comes with status 200; flip: one bit of the object is
    another; shorten: half of the object comes, as if it were all.

    Where there are faults, listings come in pages of a few keys, so that a page may fail.
    """

    def __init__(self, port: int, plan: Plan) -> None:
        self._port, self._plan = port, plan
        self._numbers = itertools.count()
        self._rng = np.random.default_rng(plan.seed)
        self._first: dict[bytes, bytes] = {}  # answers to requests that read
        self._deck: list[str] = []  # faults that are still to come before any comes again

    async def serve(self) -> None:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        tell(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if EXPECTS.search(head):
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                head = EXPECTS.sub(b"", head)
            length = LENGTH.search(head)
            body = await reader.readexactly(int(length[1]) if length else 0)
            head = CONNECTION.sub(b"", head)[:-2] + b"Connection: close\r\n\r\n"
            answer = await self._answer(head, body)
            writer.write(answer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # a client that was killed
        finally:
            writer.close()

    async def _answer(self, head: bytes, body: bytes) -> bytes:
        plan = self._plan
        if head.split(b" ", 1)[0] in WRITING:
            if next(self._numbers) == plan.kill_at:
                print(f"killed {'after' if plan.after else 'before'} {head.splitlines()[0]!r}")
                if plan.after:
                    await self._ask(head + body)
                await asyncio.to_thread(ask, "now")  # until it is dead
                return b""
            tell("write")
        fault = self._fault(head)
        if fault is not None:
            tell(fault)
        if fault == "drop":
            return b""
        if fault in CODES:
            return refusal(head, *CODES[fault])
        if fault == "page":
            return response(b"200 OK", b"text/html", PORTAL)
        if fault == "delay":
            await asyncio.sleep(DELAY)
        if plan.share:
            head = LISTING.sub(rb"\1&max-keys=" + PAGE_KEYS, head)
        answer = await self._ask(head + body)
        if head.startswith(b"GET "):
            first = self._first.setdefault(request_of(head), answer)
            answer = first if fault == "stale" else answer
        if fault == "repeat":
            answer = await self._ask(head + body)
        if fault == "lose":
            return b""
        if fault == "flip":
            return self._flipped(answer)
        if fault == "shorten":
            return shortened(answer)
        return answer[: len(answer) // 2] if fault == "truncate" else answer

    def _fault(self, head: bytes) -> str | None:
        """Draw what happens to a request; None in most cases. Each fault comes about as often."""
        if self._rng.random() >= self._plan.share:
            return None
        kinds = FAULTS
        if head.startswith(b"GET "):
            kinds += OF_READS if LISTING.match(head) else OF_READS + OF_OBJECTS
        if head.startswith(b"HEAD "):  # without a body it would say that the object is not there
            kinds = tuple(kind for kind in kinds if kind != "404")
        if not any(fault in kinds for fault in self._deck):
            self._deck += self._rng.permutation([*FAULTS, *OF_READS, *OF_OBJECTS]).tolist()
        fault = next(fault for fault in self._deck if fault in kinds)
        self._deck.remove(fault)
        return fault

    def _flipped(self, answer: bytes) -> bytes:
        """Return an answer with one bit of its body changed, if it has a body."""
        head, blank, body = answer.partition(b"\r\n\r\n")
        if not body:
            return answer
        damaged = bytearray(body)
        damaged[self._rng.integers(len(damaged))] ^= 1 << self._rng.integers(8)
        return head + blank + damaged

    async def _ask(self, request: bytes) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(request)
        answer = await reader.read(-1)
        writer.close()
        # the client has to look for another connection, too
        head, blank, body = answer.partition(b"\r\n\r\n")
        return CONNECTION.sub(b"", head) + b"\r\nConnection: close" + blank + body


def request_of(head: bytes) -> bytes:
    """Return what a request asks for: its line, and the range of bytes."""
    span = re.search(rb"\r\nrange: *[^\r]*", head, re.IGNORECASE)
    return head.split(b"\r\n", 1)[0] + (span[0] if span else b"")


def response(status: bytes, kind: bytes, body: bytes, with_body: bool = True) -> bytes:
    """Return an answer as a server sends it."""
    head = b"HTTP/1.1 %b\r\nContent-Type: %b\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % (status, kind, len(body)) + (body if with_body else b"")


def refusal(head: bytes, status: bytes, code: bytes) -> bytes:
    """Return an error of S3."""
    body = b'<?xml version="1.0"?><Error><Code>%b</Code><Message>%b</Message></Error>'
    return response(status, b"application/xml", body % (code, code), not head.startswith(b"HEAD "))


def shortened(answer: bytes) -> bytes:
    """Return half of an object with the length of that half."""
    head, blank, body = answer.partition(b"\r\n\r\n")
    body = body[: len(body) // 2]
    return LENGTH.sub(b"\r\nContent-Length: %d" % len(body), head) + blank + body


@cache
def share_service_models() -> None:
    """Let all children have what every client else reads anew: half a second of JSON."""
    botocore.session.create_loader = cache(create_loader)
    boto3.client("s3", region_name=REGION)


def _proxy(port: int, plan: Plan) -> None:
    asyncio.run(Proxy(port, plan).serve())


def _moto() -> None:
    with serving(OneAtATime()) as environment:
        tell(environment)
        threading.Event().wait()


class Objects(Ground):
    """A bucket of moto's server; jobs reach it through a proxy."""

    most_kills = 8  # what surrounds a kill takes as long as the job

    def take(self, folder: Path) -> Place:
        share_service_models()
        local = folder / "place"
        local.mkdir()
        self._server = Child(_moto, place=local)
        # a killed process leaves temporary files, which belong to the system
        (folder / "tmp").mkdir()
        self.environment = {"TMPDIR": str(folder / "tmp"), **self._server.heard()}
        self._port = int(self.environment["AWS_ENDPOINT_URL"].rpartition(":")[2])
        place = Place(f"s3://{BUCKET}/place", local)
        self._put({}, place)
        return place

    def give_back(self) -> None:
        self._server.end()

    def keep(self, place: Place) -> Callable[[Path], Place]:
        path = place.local.with_name("given")
        shutil.copytree(place.local, path)
        objects = run(snapshot, place.url, place=place.local, environment=self.environment)

        def copy(folder: Path) -> Place:
            shutil.rmtree(place.local)
            shutil.copytree(path, place.local)
            self._put(objects, place)
            return place

        self._copy = copy
        return copy

    def run_counted(self, function: Callable[..., Any], place: Place) -> tuple[End, int]:
        message: list[str] = []
        # without the proxy, which takes half of the time
        alone = Child(function, place, place=place.local, environment=self.environment).wait()
        self._copy(place.local.parent)
        end = self.run_behind(Plan(), function, place, lambda child, what: message.append(what))
        return replace(end, seconds=alone.seconds), len(message)

    def kill_at(self, k: int, after: bool, function: Callable[..., Any], place: Place) -> End:
        plan = Plan(kill_at=k, after=after)
        return self.run_behind(plan, function, place, lambda child, what: None)

    def run_behind(
        self,
        plan: Plan,
        function: Callable[..., Any],
        place: Place,
        react: Callable[[Child, str], object],
    ) -> End:
        """Run a function whose requests all pass a proxy of that plan."""
        proxy = Child(_proxy, self._port, plan, place=place.local)
        try:
            url = f"http://127.0.0.1:{proxy.heard()}"
            child = Child(
                function,
                place,
                place=place.local,
                environment={**self.environment, "AWS_ENDPOINT_URL": url},
            )

            def hear(child: Child, what: str) -> None:
                if what == "now":
                    child.kill()
                    proxy.answer()
                react(child, what)

            return child.wait(beside=proxy, react=hear)
        finally:
            proxy.end()

    def _put(self, objects: dict[str, bytes], place: Place) -> None:
        """Let these be all there are."""
        reset = f"{self.environment['AWS_ENDPOINT_URL']}/moto-api/reset"
        urllib.request.urlopen(urllib.request.Request(reset, method="POST")).close()
        run(put, place.url, objects, place=place.local, environment=self.environment)


def snapshot(url: str) -> dict[str, bytes]:
    """Return every object below a URL."""
    fs, path = fsspec.core.url_to_fs(url)
    return {name[len(path) + 1 :]: fs.cat_file(name) for name in fs.find(path)}


def put(url: str, objects: dict[str, bytes]) -> None:
    fs, path = fsspec.core.url_to_fs(url)
    fs.mkdir(BUCKET)
    fs.pipe({f"{path}/{name}": content for name, content in objects.items()})


class Failed(Killed):
    """Trials in which the network fails the job, not the machine; it is then run again without."""

    def __init__(self, job: Job) -> None:
        super().__init__(job, Objects)

    def trial(self, rng: np.random.Generator, folder: Path, tally: Tally) -> None:
        place = self.copy(folder)
        seen = self.before

        def meet(child: Child, what: str) -> None:
            if what in (*FAULTS, *OF_READS, *OF_OBJECTS):
                tally.kills += 1
                tally.met[what] += 1

        def behind(share: float, function: Callable[[Place], Any]) -> End:
            plan = Plan(share=share, seed=int(rng.integers(2**31)))
            return self.ground.run_behind(plan, function, place, meet)

        for _ in range(self.ground.most_kills):
            end = behind(float(rng.choice(SHARES)), self.job.run)
            seen = self._check(place, seen, end)
            if end.error is None:
                break
            self._judge(end)
        self._finish(place)
        end = behind(SHARE_OF_LOOKS, self._look_often)  # many more faults, in one process
        self._judge(end, "read despite faults: ")

    def _look_often(self, place: Place) -> None:
        """In a child: what the job has made is read as it is, or an error of ours says why not."""
        for _ in range(N_LOOKS):
            tell("looks")  # it is not stuck
            try:
                now = self.job.look(place)
            except (BagbasisError, OSError):
                continue
            assert now == self.after, f"{now} is read in silence; there is {self.after}"


THERE = [job for job in JOBS if "objects" in job.grounds]
CAMPAIGNS = (
    Mixed(
        "jobs-s3",
        [Killed(job, Objects) for job in THERE],
        [1 if job.name in SLOW else 4 for job in THERE],
    ),
    Mixed("network-s3", [Failed(job) for job in JOBS if job.name in FAILED]),
)
