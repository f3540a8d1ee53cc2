#!/usr/bin/env python3
"""Times the Python package's `filter` beside OpenCV, SciPy, scikit-image, PyTorch, kornia and CuPy: one
machine, one run, turn by turn, one call after another.

    scripts/peers/python.py [--rounds 15] [--sizes 256x256,1920x1080,3840x2160] [--types u8,u16]
        [--formats gray,rgb] [--filters box3,...] [--threads 1,2] [--seconds 0.05] [--only host|card]

Each call gets an array that was copied just before, and makes a new result, as calls of programs do. Numbers
are medians: microseconds a call, and the median over the rounds of peer / framepipe, so that more than 1
means that framepipe is faster. All have the border that OpenCV has by default (mirror).

Before a peer is timed its result is compared with framepipe's. It may differ by as many levels of 8 bits as
the line of its name says, since the others round otherwise or compute with fewer bits; by more, and it is
marked '!' and gets no ratio. PyTorch and kornia compute with floats: making the picture one, and rounding the
result to its type, are part of their calls. SciPy and scikit-image have one thread.

Where CuPy finds a card, arrays that lie on it are timed too, PyTorch's and CuPy's own. Types that the
installed framepipe refuses, and peers that are not there, are named and left out.

It runs in an environment of its own: `python3 -m venv target/peers/python` and `target/peers/python/bin/pip
install opencv-python-headless scipy scikit-image ./python`, and torch, kornia, cupy-cuda12x where wanted.
"""

import argparse
import datetime
import platform
import statistics
import time

import framepipe
import numpy as np


def optional(name):
    try:
        return __import__(name, fromlist=["x"])
    except Exception:  # a library that is there but broken is not there
        return None


cv2, ndimage, skimage = optional("cv2"), optional("scipy.ndimage"), optional("skimage.filters")
torch, kornia, cupy = optional("torch"), optional("kornia.filters"), optional("cupy")
if cupy is not None:
    try:
        cupy.zeros(1)
    except Exception:  # no card
        cupy = None

TYPES = {"u8": np.uint8, "u16": np.uint16, "f32": np.float32}


class Filter:
    """A mask: weights across and down, or a matrix."""

    def __init__(self, name, spec, matrix=None, sigma=None, size=None):
        self.name, self.spec, self.sigma = name, spec, sigma
        self.size = size or len(matrix)
        if matrix is not None:
            self.matrix, self.row = matrix, None
        else:
            at = np.arange(self.size) - self.size // 2
            row = np.ones(self.size) if sigma is None else np.exp(-(at**2) / (2 * sigma**2))
            self.row = row / row.sum()
            self.matrix = np.outer(self.row, self.row)


def filters():
    k = np.arange(5)
    # No symmetry and full rank, so that nobody finds a way round the multiplications.
    weights = 1 + (7 * k[:, None] + 5 * k + 3 * k[:, None] * k) % 11
    direct = framepipe.Mask(weights, "sum")
    return [
        Filter("box3", "box:size=3", size=3),
        Filter("box15", "box:size=15", size=15),
        Filter("gaussian", "gaussian:size=13:sigma=2", sigma=2, size=13),
        Filter("mask5x5", direct, weights / weights.sum()),
    ]


# --- who is timed: a name, the levels by which results may differ, threads, and a function of a picture ----


def by_opencv(f):
    if f.sigma is not None:
        return lambda a: cv2.GaussianBlur(a, (f.size, f.size), f.sigma)
    if f.row is not None:
        return lambda a: cv2.blur(a, (f.size, f.size))
    kernel = f.matrix.astype(np.float32)
    return lambda a: cv2.filter2D(a, -1, kernel)


def by_scipy(f):
    def one(a):
        axes = (0, 1)
        if f.sigma is not None:
            return ndimage.gaussian_filter(a, f.sigma, mode="mirror", radius=f.size // 2, axes=axes)
        if f.row is not None:
            return ndimage.uniform_filter(a, f.size, mode="mirror", axes=axes)
        return ndimage.correlate(a, f.matrix if a.ndim == 2 else f.matrix[..., None], mode="mirror")

    return one


def by_skimage(f):
    if f.sigma is None:
        return None
    options = {"mode": "mirror", "truncate": (f.size // 2) / f.sigma, "preserve_range": True}
    return lambda a: skimage.gaussian(a, f.sigma, channel_axis=-1 if a.ndim == 3 else None, **options)


def by_torch(f):
    rows = [f.matrix] if f.row is None else [f.row[:, None], f.row[None]]

    def one(a):
        tensor = a if isinstance(a, torch.Tensor) else torch.from_numpy(a)
        planes = tensor[None, None] if tensor.ndim == 2 else tensor.permute(2, 0, 1)[:, None]
        planes = planes.float()
        r = f.size // 2
        planes = torch.nn.functional.pad(planes, (r, r, r, r), mode="reflect")
        for weights in rows:
            kernel = torch.as_tensor(weights, dtype=torch.float32, device=planes.device)[None, None]
            planes = torch.nn.functional.conv2d(planes, kernel)
        planes = planes[0, 0] if tensor.ndim == 2 else planes[:, 0].permute(1, 2, 0)
        return planes if tensor.is_floating_point() else planes.round_().to(tensor.dtype)

    return one


def by_kornia(f):
    def one(a):
        tensor = torch.from_numpy(a)
        planes = (tensor[None, None] if a.ndim == 2 else tensor.permute(2, 0, 1)[None]).float()
        size = (f.size, f.size)
        if f.sigma is not None:
            planes = kornia.gaussian_blur2d(planes, size, (float(f.sigma),) * 2, border_type="reflect")
        elif f.row is not None:
            planes = kornia.box_blur(planes, size, border_type="reflect")
        else:
            kernel = torch.as_tensor(f.matrix, dtype=torch.float32)[None]
            planes = kornia.filter2d(planes, kernel, border_type="reflect")
        planes = planes[0, 0] if a.ndim == 2 else planes[0].permute(1, 2, 0)
        return planes if tensor.is_floating_point() else planes.round_().to(tensor.dtype)

    return one


def by_cupy(f):
    module = __import__("cupyx.scipy.ndimage", fromlist=["x"])

    def one(a):
        flat = (0,) if a.ndim == 3 else ()
        if f.sigma is not None:
            radius = (f.size // 2) / f.sigma
            return module.gaussian_filter(a, (f.sigma, f.sigma, *flat), mode="mirror", truncate=radius)
        if f.row is not None:
            return module.uniform_filter(a, (f.size, f.size, *(1,) * len(flat)), mode="mirror")
        weights = f.matrix if a.ndim == 2 else f.matrix[..., None]
        return module.correlate(a, cupy.asarray(weights), mode="mirror")

    return one


PEERS = [("OpenCV", cv2, by_opencv, 2, 0), ("SciPy", ndimage, by_scipy, 2, 1)]
PEERS += [("scikit-image", skimage, by_skimage, 0.51, 1), ("PyTorch", torch, by_torch, 1, 0)]
PEERS += [("kornia", kornia and torch and kornia, by_kornia, 1, 0)]


def set_threads(count):
    if cv2 is not None:
        cv2.setNumThreads(count)
    if torch is not None:
        torch.set_num_threads(count)


def seconds(call, picture, least, finish):
    """The median of calls that take so many seconds together, each with a fresh copy."""
    times, total = [], 0
    while total < least or len(times) < 3:
        fresh = picture.copy() if hasattr(picture, "copy") else picture.clone()
        finish()
        begun = time.perf_counter()
        call(fresh)
        finish()
        times.append(time.perf_counter() - begun)
        total += times[-1]
    return statistics.median(times)


def as_host(array):
    array = array.get() if hasattr(array, "get") else array
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array).astype(np.float64)


def row(f, picture, peers, threads, options, finish=lambda: None):
    """framepipe's median in microseconds, and of each peer a word for the table."""
    ours = lambda a: framepipe.filter(a, f.spec, border="mirror", threads=threads)  # noqa: E731
    expected = as_host(ours(picture))
    level = {np.dtype(np.uint8): 1, np.dtype(np.uint16): 257}.get(np.dtype(str(picture.dtype)), 1 / 255)
    own, theirs, off = [], {}, {}
    calls = {}
    for name, module, make, bound, most_threads in peers:
        call = make(f) if module is not None and not (most_threads and threads > most_threads) else None
        if call is not None:
            try:
                off[name] = np.abs(as_host(call(picture)) - expected).max() / level
            except (RuntimeError, TypeError, ValueError, getattr(cv2, "error", ValueError)):
                continue  # a type that it does not take
            calls[name], theirs[name] = (call, bound), []
    for _ in range(options.rounds):
        own.append(seconds(ours, picture, options.seconds, finish))
        for name, (call, _) in calls.items():
            theirs[name].append(seconds(call, picture, options.seconds, finish))
    words = {}
    for name, times in theirs.items():
        ratio = statistics.median(t / o for t, o in zip(times, own))
        is_off = off[name] > calls[name][1]
        verdict = f"! {off[name]:.1f}" if is_off else f"{ratio:.2f}"
        words[name] = f"{1e6 * statistics.median(times):.0f} ({verdict})"
    return 1e6 * statistics.median(own), words


def takes(kind):
    """True if the installed framepipe filters arrays of that type; if not, a line says so."""
    try:
        framepipe.filter(np.zeros((8, 8), TYPES[kind]), "box:size=3")
    except TypeError:
        print(f"{kind} is left out: this framepipe does not take it")
        return False
    return True


def pictures(options):
    random = np.random.default_rng(1)
    for size in options.sizes.split(","):
        width, height = map(int, size.split("x"))
        for kind in options.types:
            for form in options.formats.split(","):
                shape = (height, width) if form == "gray" else (height, width, 3)
                values = random.random(shape, np.float32)
                most = 1 if kind == "f32" else np.iinfo(TYPES[kind]).max
                picture = (values * most).astype(TYPES[kind])
                yield f"{size} {kind} {form}", picture


def table(options, peers, chosen, on_card):
    names = [name for name, module, *_ in peers if module is not None]
    heads = ["filter", "array", "threads", "framepipe, us", *(f"{name}, us (ratio)" for name in names)]
    print(f"| {' | '.join(heads)} |")
    print(f"|{'---|' * (4 + len(names))}")
    for label, picture in pictures(options):
        for f in chosen:
            for threads in [0] if on_card else map(int, options.threads.split(",")):
                finish = lambda: None  # noqa: E731
                if on_card:
                    picture, finish = cupy.asarray(picture), cupy.cuda.Device().synchronize
                else:
                    set_threads(threads)
                own, words = row(f, picture, peers, threads, options, finish)
                cells = [f.name, label, "card" if on_card else str(threads), f"{own:.0f}"]
                cells += [words.get(name, "-") for name in names]
                print(f"| {' | '.join(cells)} |", flush=True)


def processor():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main():
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sizes", default="256x256,1920x1080,3840x2160")
    parser.add_argument("--types", default="u8,u16,f32")
    parser.add_argument("--formats", default="gray,rgb")
    parser.add_argument("--filters", default="box3,box15,gaussian,mask5x5")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", type=float, default=0.05, help="of one library's calls in a round")
    parser.add_argument("--only", choices=["host", "card"], help="arrays that lie there [default: both]")
    options = parser.parse_args()
    chosen = [f for f in filters() if f.name in options.filters.split(",")]
    print(f"{processor()}, {datetime.date.today()}, Python {platform.python_version()}")
    print(f"framepipe {framepipe.__version__}")
    for name, module, _, bound, _ in PEERS:
        if module is None:
            print(f"{name} is not installed")
            continue
        version = getattr(__import__(module.__name__.partition(".")[0]), "__version__", "?")
        print(f"{name} {version}, to {bound} levels of 8 bits")
    options.types = [kind for kind in options.types.split(",") if takes(kind)]
    if options.only != "card":
        table(options, PEERS, chosen, False)
    if options.only == "host":
        return
    if cupy is None:
        print("no CuPy with a card: arrays on one are not timed")
        return
    card = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"\non the card {card}, CuPy {cupy.__version__}")
    torch_there = torch if torch is not None and torch.cuda.is_available() else None

    def by_torch_there(f):
        call = by_torch(f)
        return lambda a: call(torch.as_tensor(a, device="cuda"))

    peers = [("CuPy", cupy, by_cupy, 2, 0), ("PyTorch", torch_there, by_torch_there, 1, 0)]
    table(options, peers, chosen, True)


if __name__ == "__main__":
    main()
