#!/usr/bin/env python3
"""Times a whole run, H.264 in and x264 veryfast crf 23 out, with a filter and without one: framepipe beside
FFmpeg's own filter.

    scripts/peers/video.py [--clip FILE] [--frames 150] [--rounds 5] [--cores 0,1] [--size 7]
                           [-- options of framepipe filter]
    scripts/peers/video.py --gaussian 1.4 --frames 1800 --cores all -- --engine cuda

Without --clip it makes one of 1920x1080 with FFmpeg's generators. The runs take turns, all on the same cores:
framepipe with `--engine none`, framepipe with the mask, ffmpeg without a filter, ffmpeg with `convolution`
(up to 7x7). Printed are medians of wall time and of processor time, and for both programs the median over the
rounds of time with / time without, which is what the filter costs. The mask has full rank and no symmetry, so
that nobody finds a way round the multiplications, and a weight in its middle that leaves the picture almost
as it is, so that the encoder has the same work with it and without. `--gaussian SIGMA` takes a blur instead,
beside ffmpeg's `gblur`. FRAMEPIPE_PROGRAM and FFMPEG name other programs than the one that cargo builds here
and ffmpeg.
"""

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FFMPEG = os.environ.get("FFMPEG", "ffmpeg")


def make_clip(path, frames):
    """Plain moving shapes, quick to decode and encode, so that the filter's share of the time is large."""
    lavfi = "testsrc2=size=1920x1080:rate=25"
    command = [FFMPEG, "-v", "error", "-y", "-f", "lavfi", "-i", lavfi, "-frames:v", str(frames)]
    subprocess.run([*command, "-c:v", "libx264", "-preset", "veryfast", "-crf", "18", path], check=True)


def timed(command, cores):
    """Wall and processor seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    subprocess.run(
        command, check=True, capture_output=True, preexec_fn=lambda: os.sched_setaffinity(0, cores)
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clip")
    parser.add_argument("--frames", type=int, default=150)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cores", default="0,1", help="which, or all")
    parser.add_argument("--size", type=int, default=7)
    parser.add_argument("--gaussian", type=float, metavar="SIGMA")
    parser.add_argument("--no-peer", action="store_true", help="framepipe alone")
    parser.add_argument("more", nargs="*", help="options of framepipe filter, after --")
    options = parser.parse_args()
    cores = os.sched_getaffinity(0) if options.cores == "all" else set(map(int, options.cores.split(",")))
    program = os.environ.get("FRAMEPIPE_PROGRAM")
    if not program:
        subprocess.run(["cargo", "build", "--release", "--locked", "--quiet"], cwd=ROOT, check=True)
        program = str(ROOT / "target/release/framepipe")
    size = range(options.size)
    weights = [[1 + (7 * j + 5 * i + 3 * j * i) % 11 for i in size] for j in size]
    weights[options.size // 2][options.size // 2] = 4096
    total = sum(map(sum, weights))
    with tempfile.TemporaryDirectory() as folder:
        clip = options.clip or f"{folder}/in.mp4"
        if not options.clip:
            make_clip(clip, options.frames)
        mask = "mask:rows=" + ";".join(" ".join(map(str, row)) for row in weights) + ":divisor=sum"
        encoding = ["--encoder", "libx264", "--preset", "veryfast", "--quality", "23"]
        ours = [program, "filter", clip, f"{folder}/ours.mp4", "--overwrite", "--quiet", *encoding]
        if options.gaussian is None:
            ours += ["--filter", mask, "--algorithm", "direct"]
        else:
            ours += ["--filter", f"gaussian:sigma={options.gaussian}"]
        theirs = [
            FFMPEG,
            "-v",
            "error",
            "-nostdin",
            "-y",
            "-i",
            clip,
            "-c:v",
            "libx264",
            "-preset",
            "veryfast",
        ]
        theirs += ["-crf", "23"]
        runs = {
            "framepipe --engine none": [*ours, "--engine", "none"],
            "framepipe": [*ours, *(options.more or ["--engine", "cpu"])],
        }
        if (options.gaussian or options.size <= 7) and not options.no_peer:
            matrix = " ".join(str(w) for row in weights for w in row)
            peer = "convolution=" + ":".join([matrix] * 4 + [f"1/{total}"] * 4)
            if options.gaussian:
                peer = f"gblur=sigma={options.gaussian}"
            runs["ffmpeg, no filter"] = [*theirs, f"{folder}/theirs.mp4"]
            runs["ffmpeg"] = [*theirs, "-vf", peer, f"{folder}/theirs.mp4"]
        taken = {name: [] for name in runs}
        for _ in range(options.rounds):
            for name, command in runs.items():
                taken[name].append(timed(command, cores))
        print(f"{'':26}{'wall s':>8}{'cpu s':>8}")
        for name, times in taken.items():
            wall, busy = (statistics.median(t[k] for t in times) for k in (0, 1))
            print(f"{name:26}{wall:8.2f}{busy:8.2f}")
        names = list(runs)
        for without, with_mask in zip(names[::2], names[1::2]):
            for k, what in ((0, "wall"), (1, "processor")):
                ratio = statistics.median(b[k] / a[k] for a, b in zip(taken[without], taken[with_mask]))
                print(f"{with_mask} / {without}, {what} time: {ratio:.3f}")
        if "ffmpeg" in taken:
            ratio = statistics.median(b[0] / a[0] for a, b in zip(taken["framepipe"], taken["ffmpeg"]))
            print(f"ffmpeg / framepipe, wall time: {ratio:.3f}")


if __name__ == "__main__":
    main()
