#!/usr/bin/env python3
"""Times framepipe's CPU engine beside OpenCV, VapourSynth, libvips and FFmpeg: one machine, one run, turn by
turn.

    scripts/peers/cpu.py [--rounds 7] [--formats gray,rgb24] [--threads 1,2] [--sizes 3,5,7,...]
        [--kinds direct,gaussian,box] [--turns cold,warm] [--cache-mib 32] [--simd avx2]

Every cell is timed cold and warm. Cold: pictures and results take turns which are together four times the
last-level cache (its size is the system's word or `--cache-mib`), as frames of a pipeline are in no cache.
Warm: one picture, or where two frames are worked on at once three. All libraries go round as many pictures;
VapourSynth's core recycles its results' memory as it likes. FFmpeg is a program of its own, whose frames come
from its pool: both mean the same to it.

Before a peer is timed its result is compared with framepipe's, away from the edges; the largest difference in
levels is printed beside its time ('!' from two levels on: a peer that computes something else, or less
exactly). Times are milliseconds a frame, medians over the rounds; a ratio is the median over the rounds of
peer / framepipe, so more than 1 means that framepipe is faster. `copies` is framepipe's time as a multiple of
a plain cold copy of the frame on as many threads. Peers that are not there are left out.

Two threads are two threads in one frame for libvips and FFmpeg, two frames at once for framepipe and
VapourSynth, and the better of both for OpenCV.

It runs in an environment of its own: `python3 -m venv target/peers/venv && target/peers/venv/bin/pip install
numpy opencv-python-headless vapoursynth pyvips pyvips-binary` (Python 3.12 or later for VapourSynth)."""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
WIDTH, HEIGHT = 1920, 1080
# Warm pictures where two frames are worked on at once: as many as framepipe holds in flight then.
PICTURES = 3
# Cold pictures and results are together so many times the last-level cache.
TIMES = 4
# Frames that are timed where two are worked on at once.
FRAMES = 36


def last_level_cache():
    """Bytes of the first core's largest cache, as Linux says."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    sizes = [
        path.read_text().strip() for path in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("*/size")
    ]
    return max((int(size[:-1]) * units[size[-1]] for size in sizes if size[-1:] in units), default=32 << 20)


def optional(name):
    try:
        return __import__(name)
    except Exception:  # a library that is there but broken is not there
        return None


cv2, vs = optional("cv2"), optional("vapoursynth")


class Task:
    """One mask on one format with some threads and so many pictures; `weights` (integers, with their sum as
    divisor) or a row of real numbers."""

    def __init__(self, kind, size, channels, threads, cache=0):
        self.kind, self.size, self.channels, self.threads = kind, size, channels, threads
        self.cache = cache
        warm = 1 if threads == 1 else PICTURES
        self.pictures = max(warm, -(-TIMES * cache // (2 * WIDTH * HEIGHT * channels)))
        self.sigma = 0.3 * ((size - 1) * 0.5 - 1) + 0.8
        k = np.arange(size)
        if kind == "direct":
            # No symmetry and full rank, so that nobody finds a way round the multiplications.
            self.weights = 1 + (7 * k[:, None] + 5 * k[None, :] + k[:, None] * k[None, :] * 3) % 11
        row = np.exp(-((k - size // 2) ** 2) / (2 * self.sigma**2))
        self.row = row / row.sum() if kind == "gaussian" else np.full(size, 1 / size)

    def filter(self):
        if self.kind == "direct":
            rows = ";".join(" ".join(map(str, r)) for r in self.weights)
            return f"mask:rows={rows}:divisor=sum"
        return (
            f"gaussian:size={self.size}:sigma={self.sigma}"
            if self.kind == "gaussian"
            else f"box:size={self.size}"
        )


class Framepipe:
    name = "framepipe"

    def __init__(self, picture, simd):
        self.simd = simd
        subprocess.run(["cargo", "bench", "--no-run", "--bench", "frames"], cwd=ROOT, check=True)
        built = subprocess.run(
            ["cargo", "bench", "--no-run", "--bench", "frames", "--message-format=json"],
            cwd=ROOT, check=True, capture_output=True, text=True,
        )
        messages = map(json.loads, built.stdout.splitlines())
        program = next(m["executable"] for m in messages if m.get("target", {}).get("name") == "frames")
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.inputs = {}
        for channels, pixels in picture.items():
            self.inputs[channels] = self.path / f"in{channels}"
            self.inputs[channels].write_bytes(pixels.tobytes())

    def ask(self, task, frames, more):
        job = (
            f"filter={task.filter()}\tformat={'gray' if task.channels == 1 else 'rgb24'}"
            f"\tsize={WIDTH}x{HEIGHT}"
            f"\tthreads={task.threads}\tframes={frames}\tinput={self.inputs[task.channels]}"
            f"\talgorithm={'direct' if task.kind == 'direct' else 'auto'}\tsimd={self.simd}\t{more}\n"
        )
        self.process.stdin.write(job)
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            sys.exit(f"framepipe: {answer['error']}")
        return answer

    def result(self, task):
        output = self.path / "out"
        self.ask(task, 1, f"turns=1\toutput={output}")
        return np.frombuffer(output.read_bytes(), np.uint8).reshape(HEIGHT, WIDTH, task.channels)

    def time(self, task):
        """Milliseconds a frame, and those of a cold copy."""
        frames = 5 if task.threads == 1 else FRAMES
        if not task.cache:
            return self.ask(task, frames, "turns=warm")["warm"]["median"], None
        answer = self.ask(task, frames, f"turns=cold\tcache={task.cache >> 20}")
        return answer["cold"]["median"], answer["copy"]["median"]


class OpenCV:
    name = "opencv"

    def __init__(self, picture):
        self.picture = picture
        self.pairs = {}
        self.turn = 0
        self.two = ThreadPoolExecutor(2)

    def supports(self, _task):
        return cv2 is not None

    def one(self, task, turn=None):
        """Filters the next picture, or that of a turn."""
        if turn is None:
            turn = self.turn = self.turn + 1
        pairs = self.pairs.setdefault(task.channels, [])
        while len(pairs) < task.pictures:
            pixels = self.picture[task.channels]
            pairs.append((pixels.copy(), np.zeros_like(pixels)))
        (pixels, result), size = pairs[turn % task.pictures], (task.size, task.size)
        if task.kind == "direct":
            kernel = (task.weights / task.weights.sum()).astype(np.float32)
            return cv2.filter2D(pixels, -1, kernel, dst=result)
        if task.kind == "gaussian":
            return cv2.GaussianBlur(pixels, size, task.sigma, dst=result)
        return cv2.blur(pixels, size, dst=result)

    def result(self, task):
        return self.one(task).reshape(HEIGHT, WIDTH, task.channels).copy()

    def time(self, task):
        cv2.setNumThreads(task.threads)
        self.one(task)
        times = []
        for _ in range(5):
            start = time.perf_counter()
            self.one(task)
            times.append(time.perf_counter() - start)
        best = statistics.median(times)
        if task.threads == 2:
            cv2.setNumThreads(1)
            times = []
            for _ in range(3):
                turns = range(self.turn + 1, self.turn + 1 + FRAMES // 3)
                self.turn = turns[-1]
                start = time.perf_counter()
                list(self.two.map(lambda turn: self.one(task, turn), turns))
                times.append((time.perf_counter() - start) / len(turns))
            best = min(best, statistics.median(times))
        return best * 1e3


class VapourSynth:
    name = "vapoursynth"

    def __init__(self, picture):
        self.picture = picture
        self.sources = {}

    def supports(self, task):
        return vs is not None and task.size <= (5 if task.kind == "direct" else 25)

    def source(self, task, is_real):
        """The picture; or, for timing, blank ones that the core hands out again and again at no cost (its
        loops do not depend on pixels)."""
        pictures = 1 if is_real else task.pictures
        key = task.channels, is_real, pictures
        if key not in self.sources:
            form = vs.GRAY8 if task.channels == 1 else vs.RGB24
            length = 1 if is_real else 100000
            shape = {"format": form, "width": WIDTH, "height": HEIGHT, "length": length, "keep": True}
            blank = [vs.core.std.BlankClip(**shape) for _ in range(pictures)]
            clip = vs.core.std.Interleave(blank) if pictures > 1 else blank[0]

            def fill(n, f):
                frame = f.copy()
                for plane in range(task.channels):
                    np.asarray(frame[plane])[:] = self.picture[task.channels][..., plane]
                return frame

            self.sources[key] = vs.core.std.ModifyFrame(clip, clip, fill) if is_real else clip
        return self.sources[key]

    def clip(self, task, is_real):
        core, clip = vs.core, self.source(task, is_real)
        if task.kind == "direct":
            return core.std.Convolution(clip, [int(v) for v in task.weights.ravel()])
        if task.kind == "box":
            radius = task.size // 2
            return core.std.BoxBlur(clip, hradius=radius, vradius=radius)
        row = [int(v) for v in np.round(1023 * task.row / task.row.max())]
        return core.std.Convolution(core.std.Convolution(clip, row, mode="h"), row, mode="v")

    def result(self, task):
        frame = self.clip(task, True).get_frame(0)
        return np.stack([np.asarray(frame[p]) for p in range(task.channels)], axis=-1)

    def time(self, task):
        vs.core.num_threads = task.threads
        frames, clip = 10 if task.threads == 1 else FRAMES, self.clip(task, False)
        # All pictures are there before any is timed; the last are those that were read longest ago.
        source = self.source(task, False)
        for n in range(task.pictures):
            source.get_frame(1 + frames + n)
        clip.get_frame(99999)
        start = time.perf_counter()
        for _ in clip[1 : 1 + frames].frames(prefetch=task.threads):
            pass
        return (time.perf_counter() - start) / frames * 1e3


class Vips:
    """libvips, in a process for each number of threads, which it reads from its environment once."""

    name = "libvips"

    def __init__(self, picture):
        self.picture = picture
        self.workers = {}
        self.known = optional("pyvips") is not None

    def supports(self, task):
        return self.known and task.kind == "direct" and task.size <= 25

    def worker(self, threads):
        if threads not in self.workers:
            self.workers[threads] = subprocess.Popen(
                [sys.executable, __file__, "--vips-worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env=dict(os.environ, VIPS_CONCURRENCY=str(threads)),
            )
        return self.workers[threads]

    def ask(self, task, frames):
        worker = self.worker(task.threads)
        head = {"size": task.size, "channels": task.channels, "weights": task.weights.ravel().tolist()}
        head |= {"frames": frames, "pictures": task.pictures}
        worker.stdin.write(json.dumps(head).encode() + b"\n" + self.picture[task.channels].tobytes())
        worker.stdin.flush()
        taken = json.loads(worker.stdout.readline())
        return taken, np.frombuffer(worker.stdout.read(HEIGHT * WIDTH * task.channels), np.uint8)

    def result(self, task):
        return self.ask(task, 1)[1].reshape(HEIGHT, WIDTH, task.channels)

    def time(self, task):
        return self.ask(task, 4)[0]


def vips_worker():
    import pyvips

    while head := sys.stdin.buffer.readline():
        head = json.loads(head)
        size, bands = head["size"], head["channels"]
        pixels = sys.stdin.buffer.read(HEIGHT * WIDTH * bands)
        copies = [bytes(bytearray(pixels)) for _ in range(head["pictures"])]
        images = [pyvips.Image.new_from_memory(copy, WIDTH, HEIGHT, bands, "uchar") for copy in copies]
        weights = np.array(head["weights"]).reshape(size, size).tolist()
        mask = pyvips.Image.new_from_array(weights, scale=float(np.sum(weights)))
        times = []
        for turn in range(head["frames"]):
            image = images[turn % len(images)]
            start = time.perf_counter()
            done = image.conv(mask, precision="integer").write_to_memory()
            times.append(time.perf_counter() - start)
        sys.stdout.buffer.write(json.dumps(statistics.median(times) * 1e3).encode() + b"\n" + bytes(done))
        sys.stdout.buffer.flush()


class FFmpeg:
    """FFmpeg's convolution filter: the time of a run with it less that of a run without."""

    name = "ffmpeg"

    def __init__(self, picture):
        self.folder = tempfile.TemporaryDirectory()
        self.inputs = {}
        for channels, pixels in picture.items():
            self.inputs[channels] = pathlib.Path(self.folder.name) / f"in{channels}"
            # Planar for RGB, which is what the filter works on.
            planes = [pixels[..., c] for c in ((0,) if channels == 1 else (1, 2, 0))]
            self.inputs[channels].write_bytes(b"".join(p.tobytes() for p in planes))

    def supports(self, task):
        return shutil.which("ffmpeg") is not None and task.kind == "direct" and task.size <= 7

    def run(self, task, frames, convolve, output):
        form = "gray" if task.channels == 1 else "gbrp"
        matrix = " ".join(map(str, task.weights.ravel()))
        scale = f"1/{task.weights.sum()}"
        text = ":".join([matrix] * 4 + [scale] * 4)
        command = ["ffmpeg", "-v", "error", "-nostdin", "-y", "-f", "rawvideo", "-pixel_format", form]
        command += [
            "-video_size",
            f"{WIDTH}x{HEIGHT}",
            "-stream_loop",
            "-1",
            "-i",
            str(self.inputs[task.channels]),
        ]
        command += ["-filter_threads", str(task.threads), "-frames:v", str(frames)]
        command += ["-vf", f"convolution={text}" if convolve else "null", *output]
        return subprocess.run(command, check=True, capture_output=True).stdout

    def result(self, task):
        raw = np.frombuffer(self.run(task, 1, True, ["-f", "rawvideo", "-"]), np.uint8)
        planes = raw.reshape(task.channels, HEIGHT, WIDTH)
        return np.stack([planes[p] for p in ((0,) if task.channels == 1 else (2, 0, 1))], axis=-1)

    def time(self, task):
        taken = []
        for convolve in (True, False):
            start = time.perf_counter()
            self.run(task, 12, convolve, ["-f", "null", "-"])
            taken.append(time.perf_counter() - start)
        return max(taken[0] - taken[1], 1e-6) / 12 * 1e3


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--formats", default="gray,rgb24")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--sizes", default="3,5,7,9,11,13,15,25")
    parser.add_argument("--kinds", default="direct,gaussian,box")
    parser.add_argument("--turns", default="cold,warm")
    parser.add_argument("--cache-mib", type=int, default=last_level_cache() >> 20)
    parser.add_argument("--simd", default="auto")
    options = parser.parse_args()
    random = np.random.default_rng(1)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    smooth = 128 + 70 * np.sin(x / 37) * np.cos(y / 29)
    picture = {}
    for channels in (1, 3):
        noise = random.normal(0, 25, (HEIGHT, WIDTH, channels))
        picture[channels] = (smooth[..., None] + noise).clip(0, 255).astype(np.uint8)
    ours = Framepipe(picture, options.simd)
    peers = [peer(picture) for peer in (OpenCV, VapourSynth, Vips, FFmpeg)]
    # The first second of a run is slower than all others.
    begin = time.perf_counter()
    while time.perf_counter() - begin < 1:
        ours.time(Task("box", 5, 1, 1))
    print("ms a frame of 1920x1080 (largest difference in levels), then peer / framepipe")
    for kind in options.kinds.split(","):
        for form in options.formats.split(","):
            for threads in map(int, options.threads.split(",")):
                for size in map(int, options.sizes.split(",")):
                    for turns in options.turns.split(","):
                        cache = options.cache_mib << 20 if turns == "cold" else 0
                        task = Task(kind, size, 1 if form == "gray" else 3, threads, cache)
                        compare(ours, [p for p in peers if p.supports(task)], task, form, options.rounds)


def compare(ours, peers, task, form, rounds):
    mine = ours.result(task).astype(int)
    edge = task.size
    inside = (slice(edge, -edge), slice(edge, -edge))
    off = {p.name: int(np.abs(p.result(task).astype(int)[inside] - mine[inside]).max()) for p in peers}
    own, copies, theirs = [], [], {p.name: [] for p in peers}
    for _ in range(rounds):
        taken, copy = ours.time(task)
        own.append(taken)
        copies.append(copy)
        for peer in peers:
            theirs[peer.name].append(peer.time(task))
    turns = "cold" if task.cache else "warm"
    line = f"{task.kind:9}{form:6} K {task.size:<3} {task.threads} thr {turns}"
    line += f"  framepipe {statistics.median(own):7.3f}"
    if task.cache:
        line += f" ({statistics.median(t / c for t, c in zip(own, copies)):5.2f} copies)"
    for name, times in theirs.items():
        ratio = statistics.median(t / o for t, o in zip(times, own))
        mark = "!" if off[name] > 1 else ""
        line += f"   {name} {statistics.median(times):7.3f} ({off[name]}{mark}) {ratio:5.2f}x"
    print(line, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--vips-worker"]:
        vips_worker()
    else:
        main()
