#!/usr/bin/env python3
"""Times framepipe's CPU engine beside OpenCV on floating-point pictures: one machine, one run, turn by turn.

    scripts/peers/float.py [--rounds 7] [--formats grayf32,rgbf32] [--threads 1,2] [--sizes 3,5,7,...]
        [--kinds direct,separable] [--turns cold,warm] [--cache-mib 32] [--program FILE] [--simd avx2]

`direct` is a mask without symmetry and of full rank, by OpenCV's filter2D, which takes a Fourier transform
of large ones. `separable` is a Gaussian, by the faster of OpenCV's GaussianBlur and sepFilter2D. With two
threads it is the better of two threads in one frame and two frames at once for OpenCV, two frames at once for
framepipe.

Cold pictures take turns and are together four times the last-level cache; a warm one is the same each time,
as scripts/peers/cpu.py says.

Results are compared first, away from the edges; the largest difference is printed in millionths of white.
Times are milliseconds a frame, medians over the rounds; a ratio is the median over the rounds of peer /
framepipe, so more than 1 means that framepipe is faster.

`--program` is a build of benches/frames.rs; without it one is built. It needs numpy and
opencv-python-headless, as scripts/peers/cpu.py says."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import cv2
import numpy as np
from cpu import PICTURES, TIMES, last_level_cache

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH, HEIGHT = 1920, 1080
# Frames that are timed where two are worked on at once.
FRAMES = 12


def built():
    """The program that benches/frames.rs makes."""
    command = ["cargo", "bench", "--no-run", "--bench", "frames"]
    subprocess.run(command, cwd=ROOT, check=True)
    found = subprocess.run(
        [*command, "--message-format=json"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    messages = map(json.loads, found.stdout.splitlines())
    return next(m["executable"] for m in messages if m.get("target", {}).get("name") == "frames")


class Task:
    """One mask on one format with some threads, cold for a cache of so many bytes, or warm if that is 0."""

    def __init__(self, kind, size, form, threads, cache=0):
        self.kind, self.size, self.form, self.threads = kind, size, form, threads
        self.cache = cache
        self.channels = 1 if form.startswith("gray") else 3
        # Pairs of a picture and a result.
        warm = 1 if threads == 1 else PICTURES
        self.pictures = max(warm, -(-TIMES * cache // (2 * 4 * WIDTH * HEIGHT * self.channels)))
        self.sigma = 0.3 * ((size - 1) * 0.5 - 1) + 0.8
        k = np.arange(size)
        self.weights = 1 + (7 * k[:, None] + 5 * k[None, :] + k[:, None] * k[None, :] * 3) % 11
        row = np.exp(-((k - size // 2) ** 2) / (2 * self.sigma**2))
        self.row = (row / row.sum()).astype(np.float32)

    def filter(self):
        if self.kind == "direct":
            rows = ";".join(" ".join(map(str, r)) for r in self.weights)
            return f"mask:rows={rows}:divisor=sum"
        return f"gaussian:size={self.size}:sigma={self.sigma}"


class Framepipe:
    def __init__(self, program, simd, pictures):
        self.simd = simd
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        for channels, pixels in pictures.items():
            (self.path / f"in{channels}").write_bytes(pixels.tobytes())

    def ask(self, task, frames, cache, more=""):
        half = task.form.endswith("16")
        given = "" if half else f"\tinput={self.path}/in{task.channels}"
        turns = f"cold\tcache={cache >> 20}" if cache else "warm"
        job = (
            f"filter={task.filter()}\tformat={task.form}\tsize={WIDTH}x{HEIGHT}\tthreads={task.threads}"
            f"\tframes={frames}\talgorithm={task.kind}\tsimd={self.simd}\tturns={turns}{given}{more}\n"
        )
        self.process.stdin.write(job)
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            sys.exit(f"framepipe: {answer['error']}")
        return answer["cold" if cache else "warm"]["median"]

    def result(self, task):
        output = self.path / "out"
        self.ask(task, 1, 0, f"\toutput={output}")
        return np.frombuffer(output.read_bytes(), np.float32).reshape(HEIGHT, WIDTH, task.channels)

    def time(self, task):
        return self.ask(task, 5 if task.threads == 1 else FRAMES, task.cache)


class OpenCV:
    def __init__(self, pictures):
        self.pictures = pictures
        self.pairs = {channels: [] for channels in pictures}
        self.turn = 0
        self.two = ThreadPoolExecutor(2)

    def one(self, task, way, turn=None):
        """Filters the next picture, or that of a turn."""
        if turn is None:
            turn = self.turn = self.turn + 1
        pairs, picture = self.pairs[task.channels], self.pictures[task.channels]
        while len(pairs) < task.pictures:
            pairs.append((picture.copy(), np.zeros_like(picture)))
        return way(*pairs[turn % task.pictures])

    @staticmethod
    def ways(task):
        """The calls that make the same."""
        if task.kind == "direct":
            kernel = (task.weights / task.weights.sum()).astype(np.float32)
            return [lambda pixels, to: cv2.filter2D(pixels, -1, kernel, dst=to)]
        size = (task.size, task.size)
        return [
            lambda pixels, to: cv2.GaussianBlur(pixels, size, task.sigma, dst=to),
            lambda pixels, to: cv2.sepFilter2D(pixels, -1, task.row, task.row, dst=to),
        ]

    def result(self, task):
        return self.one(task, self.ways(task)[0]).reshape(HEIGHT, WIDTH, task.channels).copy()

    def time(self, task):
        return min(self.of_way(task, way) for way in self.ways(task)) * 1e3

    def of_way(self, task, way):
        cv2.setNumThreads(task.threads)
        self.one(task, way)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            self.one(task, way)
            times.append(time.perf_counter() - start)
        best = statistics.median(times)
        if task.threads == 2:
            cv2.setNumThreads(1)
            turns = range(self.turn + 1, self.turn + 1 + FRAMES)
            self.turn = turns[-1]
            start = time.perf_counter()
            list(self.two.map(lambda turn: self.one(task, way, turn), turns))
            best = min(best, (time.perf_counter() - start) / FRAMES)
        return best


def compare(ours, theirs, task, rounds):
    off = 0.0
    if not task.form.endswith("16"):
        inside = (slice(task.size, -task.size), slice(task.size, -task.size))
        off = float(np.abs(ours.result(task)[inside] - theirs.result(task)[inside]).max()) * 1e6
    own, other = [], []
    for _ in range(rounds):
        own.append(ours.time(task))
        other.append(theirs.time(task))
    ratio = statistics.median(t / o for t, o in zip(other, own))
    print(
        f"{task.kind:10}{task.form:9} K {task.size:<3} {task.threads} thr {'cold' if task.cache else 'warm'}"
        f"  framepipe {statistics.median(own):8.3f}  opencv {statistics.median(other):8.3f}"
        f"  {ratio:5.2f}x  ({off:.2f})",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--formats", default="grayf32,rgbf32")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--sizes", default="3,5,7,9,11,13,15,25")
    parser.add_argument("--kinds", default="direct,separable")
    parser.add_argument("--turns", default="cold,warm")
    parser.add_argument("--cache-mib", type=int, default=last_level_cache() >> 20)
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--simd", default="auto")
    options = parser.parse_args()
    random = np.random.default_rng(1)
    pictures = {c: random.random((HEIGHT, WIDTH, c), dtype=np.float32) for c in (1, 3)}
    ours, theirs = Framepipe(options.program or built(), options.simd, pictures), OpenCV(pictures)
    # The first second of a run is slower than all others.
    begin = time.perf_counter()
    while time.perf_counter() - begin < 1:
        ours.time(Task("separable", 5, "grayf32", 1))
    print("ms a frame of 1920x1080, OpenCV / framepipe, largest difference in millionths of white")
    for kind in options.kinds.split(","):
        for form in options.formats.split(","):
            for threads in map(int, options.threads.split(",")):
                for size in map(int, options.sizes.split(",")):
                    for turns in options.turns.split(","):
                        cache = options.cache_mib << 20 if turns == "cold" else 0
                        compare(ours, theirs, Task(kind, size, form, threads, cache), options.rounds)


if __name__ == "__main__":
    main()
