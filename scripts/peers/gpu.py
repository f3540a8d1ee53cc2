#!/usr/bin/env python3
"""Times framepipe's kernels beside NPP, CuPy and PyTorch: one card, one run, kernels alone.

    gpu.py [--sizes 1920x1080,3840x2160] [--formats gray,rgb24] [--masks 3,5,7,9,15,25]
           [--kinds direct,gaussian] [--seconds 0.15] [--json FILE] [--framepipe PROGRAM]

It runs from a bundle (peers/gpu.py) and from the source tree (scripts/peers/gpu.py), and needs numpy. NPP is
timed where nvcc finds it, CuPy and PyTorch where they can be imported; what is missing is named. Before a
peer is timed its result on the same picture is compared with framepipe's: over the whole frame where it has
the same border (replicate), else away from the edges. A peer that is off by two levels or more is marked '!'
and gets no ratio.

Everyone's pictures are together four times the level-2 cache and take turns; their launches are captured as
one CUDA graph, whose replays are timed by events; where a peer's calls cannot be captured, the calls
themselves are timed so ('e'). Times are milliseconds a frame, medians. framepipe, NPP and CuPy read and write
8 bits. PyTorch convolves pictures that already are float or half planes, and the time of making them so is
left out, in its favour. framepipe is timed before and after the peers, and the mean of both medians is what
they are held against. With --formats grayf32,rgbf32 everyone reads and writes floating-point samples:
framepipe's times are those of its bench `filters` (checks/filters in a bundle), and all results are compared,
in a corner of the frame and in levels of 255, with NumPy's in 64 bits.

The JSON holds machine, date, versions, ceilings, what is missing, and for each mask framepipe's times and
each peer's: median, min and p90 in milliseconds, the largest difference in levels (off), and the ratio.
"""

import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent


def optional(name):
    try:
        return __import__(name, fromlist=["x"])
    except Exception:  # a library that is there but broken is not there
        return None


torch = optional("torch")
cupy = optional("cupy")
ndimage = optional("cupyx.scipy.ndimage") if cupy else None


class Task:
    """One mask on frames of one size and format."""

    def __init__(self, kind, taps, form, size):
        self.kind, self.taps, self.form, self.size = kind, taps, form, size
        self.width, self.height = map(int, size.split("x"))
        self.channels = 1 if form.startswith("gray") else 3
        self.is_float = form.endswith("f32")
        self.dtype = np.float32 if self.is_float else np.uint8
        k = np.arange(taps)
        if kind == "direct":
            # No symmetry and full rank, so that nobody finds a way round the multiplications.
            self.weights = 1 + (7 * k[:, None] + 5 * k[None, :] + 3 * k[:, None] * k[None, :]) % 11
            self.real = self.weights / self.weights.sum()
            rows = ";".join(" ".join(map(str, row)) for row in self.weights)
            self.filter = f"mask:rows={rows}:divisor=sum"
        else:
            self.sigma = 0.3 * ((taps - 1) * 0.5 - 1) + 0.8
            row = np.exp(-((k - taps // 2) ** 2) / (2 * self.sigma**2))
            self.row = row / row.sum()
            self.filter = f"gaussian:size={taps}:sigma={self.sigma}"
        # What a user gets who names none: small Gaussians are direct too.
        self.algorithm = "direct" if kind == "direct" else "auto"

    def key(self):
        return (self.filter, self.form, self.width, self.height)


def find_framepipe(given):
    places = (
        [pathlib.Path(given)]
        if given
        else [HERE.parent / "framepipe", HERE.parents[1] / "target/release/framepipe"]
    )
    for place in places:
        if place.is_file():
            return str(place.resolve())
    sys.exit(f"framepipe is not at {' or '.join(map(str, places))}; name it with --framepipe")


class Framepipe:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def result(self, task, picture):
        source, target = self.folder / "in.raw", self.folder / "out.raw"
        source.write_bytes(picture.tobytes())
        command = [
            self.program,
            "filter",
            f"raw:{task.size}:{task.form}:25:{source}",
            f"raw:{target}",
            "--filter",
            task.filter,
        ]
        # The same bits as the card's, which `bench kernels` checks for what it times, and here without
        # starting CUDA for each.
        command += ["--engine", "cpu", "--algorithm", task.algorithm, "--overwrite", "--quiet"]
        subprocess.run(command, check=True)
        return np.frombuffer(target.read_bytes(), np.uint8).reshape(task.height, task.width, task.channels)

    def times(self, tasks):
        """All tasks in one run a kind and size, as `bench kernels` measures them."""
        found, ceilings, machine = {}, [], {}
        for group in sorted({(t.algorithm, t.size) for t in tasks}):
            mine = [t for t in tasks if (t.algorithm, t.size) == group]
            command = [
                self.program,
                "bench",
                "kernels",
                "--engines",
                "cuda",
                "--memory",
                "auto",
                "--scopes",
                "kernel",
                "--json",
                "-",
            ]
            command += [
                "--algorithms",
                group[0],
                "--sizes",
                group[1],
                "--formats",
                ",".join(sorted({t.form for t in mine})),
            ]
            for spec in dict.fromkeys(t.filter for t in mine):
                command += ["--filter", spec]
            sweep = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            ceilings += [c for c in sweep["ceilings"] if c not in ceilings]
            machine = {"machine": sweep["machine"], "versions": sweep["versions"]}
            for cell in sweep["cells"]:
                if not cell["samples_checked"]:
                    sys.exit(f"framepipe did not check its result of {cell['filter']}")
                found[(cell["filter"], cell["format"], cell["width"], cell["height"])] = cell
        return found, ceilings, machine


def in_corner(task, picture):
    """What the task makes of a corner of the picture, by NumPy."""
    size, half = 128, task.taps // 2
    corner = picture[: size + half, : size + half].astype(np.float64)
    padded = np.pad(corner, ((half, half), (half, half), (0, 0)), mode="edge")
    real = task.real if task.kind == "direct" else np.outer(task.row, task.row)
    made = np.zeros((size, size, task.channels))
    for y in range(task.taps):
        for x in range(task.taps):
            made += real[y, x] * padded[y : y + size, x : x + size]
    return made


class FloatBench:
    """framepipe's own times of masks on floating-point frames."""

    def __init__(self, program):
        folder = pathlib.Path(program).parent
        built = sorted((folder / "deps").glob("filters-*"), key=lambda path: path.stat().st_mtime)
        places = [folder / "checks/filters"] + [path for path in reversed(built) if path.suffix == ""]
        self.bench = next((place for place in places if place.is_file()), None)
        if self.bench is None:
            sys.exit(f"the bench 'filters' is neither {places[0]} nor in {folder}/deps")
        self.version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True)

    def times(self, tasks):
        names = dict.fromkeys(f"{task.size}:{task.form} " for task in tasks)
        table = subprocess.run([str(self.bench), *names], check=True, capture_output=True, text=True).stdout
        if table.startswith("SKIPPED"):
            sys.exit(table.strip())
        found = {}
        for line in table.splitlines():
            words = line.split()
            if len(words) == 7 and words[1] in ("direct", "separable"):
                found[(words[0], words[1], int(words[2]))] = (float(words[3]), float(words[4]))
        kinds = {"direct": "direct", "gaussian": "separable"}
        cells = {}
        for task in tasks:
            copy, time = found[(f"{task.size}:{task.form}", kinds[task.kind], task.taps)]
            cells[task.key()] = {
                "milliseconds": {"median": time},
                "share_of_copy": copy / time,
                "algorithm": kinds[task.kind],
            }
        machine = {"gpu": table.split(", ms a frame")[0]}
        return cells, [], {"machine": machine, "versions": {"framepipe": self.version.stdout.split()[-1]}}


class Npp:
    """NPP, in a program of its own."""

    def __init__(self, function, folder):
        names = {"filter32f": "npp 32f", "filter8u": "npp int", "gauss": "npp gauss"}
        self.name = names.get(function, f"npp {function.split()[0]}")
        self.function, self.folder = function, folder
        self.reverse = None

    process = None
    why_not = None

    @classmethod
    def build(cls, folder):
        nvcc = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
        if not nvcc:
            cls.why_not = "there is no nvcc"
            return
        program = folder / "npp"
        # Where NPP is not beside nvcc, its folder may be named.
        more = [f"-I{p}/include" for p in [os.environ.get("NPP_DIR")] if p] + [
            f"-L{p}/lib" for p in [os.environ.get("NPP_DIR")] if p
        ]
        command = [
            nvcc,
            "-O3",
            "-std=c++17",
            "-o",
            str(program),
            str(HERE / "npp.cu"),
            *more,
            "-lnppif",
            "-lnppc",
        ]
        built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode:
            lines = [
                line
                for line in (built.stderr + built.stdout).splitlines()
                if "error" in line or "cannot find" in line
            ]
            cls.why_not = "npp.cu cannot be built: " + (lines or ["nvcc failed"])[0]
            return
        cls.process = subprocess.Popen(
            [str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def supports(self, task):
        fits = task.is_float == self.function.endswith("of float")
        is_gauss = self.function.startswith("gauss")
        return self.process is not None and fits and (task.kind == "gaussian") == is_gauss

    def ask(self, task, picture, seconds, reverse):
        source, weights, target = self.folder / "npp-in", self.folder / "npp-weights", self.folder / "npp-out"
        source.write_bytes(picture.tobytes())
        if self.function == "filter8u":
            values = task.weights.astype(np.int32)
        else:
            values = (task.row if task.kind == "gaussian" else task.real).astype(np.float32)
        weights.write_bytes(values.tobytes())
        divisor = int(task.weights.sum()) if task.kind == "direct" else 1
        words = dict(
            function=self.function,
            width=task.width,
            height=task.height,
            channels=task.channels,
            taps=task.taps,
            reverse=int(reverse),
            weights=weights,
            divisor=divisor,
            input=source,
            output=target,
            seconds=seconds,
        )
        try:
            self.process.stdin.write("\t".join(f"{k}={v}" for k, v in words.items()) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            Npp.process = None
            raise RuntimeError("the program ended")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        made = np.frombuffer(target.read_bytes(), task.dtype)
        return answer, made.reshape(task.height, task.width, task.channels)

    def measure(self, task, picture, expected, seconds):
        """Tries the weights in both orders, since the manual is not clear; takes what is right."""
        best = None
        for reverse in [True, False] if task.kind == "direct" else [False]:
            answer, made = self.ask(task, picture, seconds, reverse)
            answer["off"] = off(made, expected)
            if best is None or answer["off"] < best["off"]:
                best = answer
            if best["off"] <= 1:
                break
        return best


def off(made, expected, edge=0):
    """The largest difference in levels, edges of so many pixels left out; of floating-point samples as far as
    there is something expected."""
    if made.dtype == np.float32:
        made = made[: expected.shape[0], : expected.shape[1]]
        edge = (slice(edge, None), slice(edge, None))
        return round(255 * float(np.abs(made[edge].astype(float) - expected[edge]).max()), 4)
    inside = (slice(edge, -edge), slice(edge, -edge)) if edge else (slice(None), slice(None))
    return int(np.abs(made[inside].astype(int) - expected[inside].astype(int)).max())


def replays(library, one, turns, seconds):
    """Milliseconds of one turn, by replays of a graph or by the calls themselves; and which it was."""
    for turn in range(turns):
        one(turn)
    library.synchronise()
    how, replay = "graph", None
    try:
        replay = library.graph(lambda: [one(turn) for turn in range(turns)])
    except Exception:
        how, replay = "events", lambda: [one(turn) for turn in range(turns)]
        library.synchronise()
    replay()
    length = max(library.timed(replay, 1)[0], 1e-3)
    passes = max(1, min(int(2.0 / length) + 1, 8192 // turns)) if how == "graph" else 1
    run = (lambda: [replay() for _ in range(passes)]) if passes > 1 else replay
    length *= passes
    library.timed(run, max(1, min(int(30.0 / length), 1000)))
    times = sorted(
        t / (turns * passes) for t in library.timed(run, max(9, min(int(seconds * 1e3 / length), 300)))
    )
    return {
        "median": statistics.median(times),
        "min": times[0],
        "p90": times[-(-len(times) * 9 // 10) - 1],
        "count": len(times),
        "frames_in_turn": turns,
        "timed_by": how,
    }


def turns_for(bytes_of_a_frame, cache):
    return max(3, min(2048, 4 * cache // bytes_of_a_frame + 1))


class Torch:
    """conv2d with one mask a channel, on planes of float or half; zero border."""

    def __init__(self, kind):
        self.kind = getattr(torch, kind)
        self.name = f"torch {'float' if kind == 'float32' else 'half'}"

    def supports(self, task):
        return not (task.is_float and self.kind == torch.float16)

    @staticmethod
    def synchronise():
        torch.cuda.synchronize()

    @staticmethod
    def graph(work):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            work()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = work()

        def replay():
            # The results' memory is held for as long as the graph writes to it.
            return graph.replay(), kept

        return replay

    @staticmethod
    def timed(run, rounds):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(rounds + 1)]
        marks[0].record()
        for mark in marks[1:]:
            run()
            mark.record()
        torch.cuda.synchronize()
        return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])]

    def measure(self, task, picture, expected, seconds):
        conv, channels, half = torch.nn.functional.conv2d, task.channels, task.taps // 2
        make = lambda values: torch.tensor(np.asarray(values), dtype=self.kind, device="cuda")
        if task.kind == "direct":
            mask = make(task.real).expand(channels, 1, -1, -1).contiguous()
            work = lambda x: conv(x, mask, padding=half, groups=channels)
        else:
            row = make(task.row).view(1, 1, 1, -1).expand(channels, 1, 1, -1).contiguous()
            column = row.transpose(2, 3).contiguous()
            work = lambda x: conv(
                conv(x, row, padding=(0, half), groups=channels), column, padding=(half, 0), groups=channels
            )
        first = make(np.moveaxis(picture, 2, 0)[None])
        made = work(first)
        if not task.is_float:
            made = made.round().clamp(0, 255).to(torch.uint8)
        made = made[0].permute(1, 2, 0).cpu().numpy()
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        turns = turns_for(2 * first.numel() * first.element_size(), cache)
        pictures = [first] + [
            torch.randint(0, 256, first.shape, device="cuda").to(self.kind) for _ in range(turns - 1)
        ]
        answer = replays(self, lambda turn: work(pictures[turn]), turns, seconds)
        answer["off"] = off(made, expected, task.taps)
        return answer


class CuPy:
    """cupyx.scipy.ndimage on interleaved 8-bit pictures, with the same border."""

    name = "cupy"

    def supports(self, _task):
        return True

    @staticmethod
    def synchronise():
        cupy.cuda.Device().synchronize()

    @staticmethod
    def graph(work):
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            work()
            stream.synchronize()
            stream.begin_capture()
            try:
                work()
            finally:
                graph = stream.end_capture()
        return lambda: graph.launch(cupy.cuda.get_current_stream())

    @staticmethod
    def timed(run, rounds):
        marks = [cupy.cuda.Event() for _ in range(rounds + 1)]
        marks[0].record()
        for mark in marks[1:]:
            run()
            mark.record()
        marks[-1].synchronize()
        return [cupy.cuda.get_elapsed_time(a, b) for a, b in zip(marks, marks[1:])]

    def measure(self, task, picture, expected, seconds):
        cache = cupy.cuda.runtime.getDeviceProperties(0)["l2CacheSize"]
        turns = turns_for(2 * picture.nbytes, cache)
        pictures = [cupy.asarray(picture)] + [
            cupy.random.randint(0, 256, picture.shape).astype(picture.dtype) for _ in range(turns - 1)
        ]
        results = [cupy.empty_like(p) for p in pictures]
        if task.kind == "direct":
            mask = cupy.asarray(task.real[:, :, None], dtype=cupy.float32)
            one = lambda turn: ndimage.correlate(pictures[turn], mask, output=results[turn], mode="nearest")
        else:
            row = cupy.asarray(task.row, dtype=cupy.float32)
            between = cupy.empty(picture.shape, cupy.float32)

            def one(turn):
                ndimage.correlate1d(pictures[turn], row, axis=1, output=between, mode="nearest")
                ndimage.correlate1d(between, row, axis=0, output=results[turn], mode="nearest")

        one(0)
        made = cupy.asnumpy(results[0])
        answer = replays(self, one, turns, seconds)
        answer["off"] = off(made, expected)
        return answer


def picture_of(task, random):
    y, x = np.mgrid[0 : task.height, 0 : task.width]
    smooth = 128 + 70 * np.sin(x / 37) * np.cos(y / 29)
    noise = random.normal(0, 25, (task.height, task.width, task.channels))
    levels = (smooth[..., None] + noise).clip(0, 255)
    return (levels / 255).astype(np.float32) if task.is_float else levels.astype(np.uint8)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1920x1080,3840x2160")
    parser.add_argument("--formats", default="gray,rgb24")
    parser.add_argument("--masks", default="3,5,7,9,15,25")
    parser.add_argument("--kinds", default="direct,gaussian")
    parser.add_argument("--seconds", type=float, default=0.15)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--framepipe")
    options = parser.parse_args()
    tasks = [
        Task(kind, taps, form, size)
        for size in options.sizes.split(",")
        for form in options.formats.split(",")
        for kind in options.kinds.split(",")
        for taps in map(int, options.masks.split(","))
    ]
    with tempfile.TemporaryDirectory() as folder:
        compare(options, tasks, pathlib.Path(folder))


def compare(options, tasks, folder):
    program = find_framepipe(options.framepipe)
    is_float = {task.is_float for task in tasks}
    if len(is_float) > 1:
        sys.exit("floating-point formats are timed in a run of their own")
    ours = FloatBench(program) if True in is_float else Framepipe(program, folder)
    peers, missing = peers_here(folder)
    first, ceilings, facts = ours.times(tasks)
    random = np.random.default_rng()
    rows, pictures = [], {}
    for task in tasks:
        shape = (task.height, task.width, task.channels)
        if shape not in pictures:
            pictures[shape] = picture_of(task, random)
        rows.append(row_of(task, pictures[shape], ours, peers, options.seconds))
        # A run that is broken off has reported what it found.
        answers = rows[-1]["peers"].items()
        found = ", ".join(f"{name} {a.get('median', a.get('error'))}" for name, a in answers)
        print(
            f"gpu.py: {len(rows)} of {len(tasks)}, "
            f"{task.kind} K {task.taps} {task.form} {task.size}: {found}",
            file=sys.stderr,
            flush=True,
        )
        if torch:
            torch.cuda.empty_cache()
        if cupy:
            cupy.get_default_memory_pool().free_all_blocks()
    drift = add_ours(rows, tasks, first, ours.times(tasks)[0])
    date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    versions = dict(facts["versions"])
    versions["torch"] = torch.__version__ if torch else None
    versions["cupy"] = cupy.__version__ if cupy else None
    print(
        f"{facts['machine']['gpu']}, {date}, framepipe {versions['framepipe']}, "
        f"torch {versions['torch']}, cupy {versions['cupy']}"
    )
    for line in missing:
        print(f"left out: {line}")
    for row in rows:
        show(row)
    print(
        f"framepipe before and after the peers: at most {100 * max(drift):.1f}% apart, "
        f"{100 * statistics.median(drift):.1f}% in the middle"
    )
    if options.json:
        result = {
            "schema": "framepipe-peers",
            "version": 1,
            "date": date,
            **facts,
            "versions": versions,
            "ceilings": ceilings,
            "missing": missing,
            "rows": rows,
        }
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def peers_here(folder):
    """The peers that this machine has, and why the others are left out."""
    Npp.build(folder)
    peers, missing = [], []
    if Npp.process:
        functions = ["filter32f", "filter8u", "gauss", "filter of float", "gauss of float"]
        peers += [Npp(function, folder) for function in functions]
    else:
        missing.append(f"NPP: {Npp.why_not}")
    if torch and torch.cuda.is_available():
        # What is compared is 32-bit arithmetic.
        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True
        peers += [Torch("float32"), Torch("float16")]
    else:
        missing.append("PyTorch: cannot be imported, or sees no card")
    if ndimage:
        peers.append(CuPy())
    else:
        missing.append("CuPy: cannot be imported")
    return peers, missing


def row_of(task, picture, ours, peers, seconds):
    """What the peers take for a task, with their results beside ours."""
    expected = in_corner(task, picture) if task.is_float else ours.result(task, picture)
    row = {
        "kind": task.kind,
        "taps": task.taps,
        "format": task.form,
        "width": task.width,
        "height": task.height,
        "peers": {},
    }
    for peer in peers:
        if not peer.supports(task):
            continue
        try:
            row["peers"][peer.name] = peer.measure(task, picture, expected, seconds)
        except Exception as error:  # reported, and the others go on
            row["peers"][peer.name] = {
                "error": str(error).splitlines()[0] if str(error) else type(error).__name__
            }
    return row


def add_ours(rows, tasks, first, second):
    """Adds framepipe's times, before and after the peers', and the ratios; gives how far they are apart."""
    drift = []
    for task, row in zip(tasks, rows):
        a, b = (found[task.key()]["milliseconds"]["median"] for found in (first, second))
        cell = second[task.key()]
        row["framepipe"] = {
            "median": (a + b) / 2,
            "before": a,
            "after": b,
            "share_of_copy": cell["share_of_copy"],
            "algorithm": cell["algorithm"],
        }
        drift.append(max(a, b) / min(a, b) - 1)
        for answer in row["peers"].values():
            if "median" in answer and answer["off"] <= 1:
                answer["ratio"] = answer["median"] / row["framepipe"]["median"]
    return drift


def show(row):
    line = f"{row['kind']:9}{row['format']:6} {row['width']}x{row['height']:<5} K {row['taps']:<3}"
    share = 100 * (row["framepipe"]["share_of_copy"] or 0)
    line += f" framepipe {row['framepipe']['median']:.4f} ({share:.0f}% of copy)"
    for name, answer in row["peers"].items():
        if "error" in answer:
            line += f"   {name}: {answer['error']}"
            continue
        ratio = f"{answer['ratio']:.2f}x" if "ratio" in answer else f"! {answer['off']} levels off"
        line += f"   {name} {answer['median']:.4f}{'e' if answer['timed_by'] == 'events' else ''} {ratio}"
    print(line, flush=True)


if __name__ == "__main__":
    main()
