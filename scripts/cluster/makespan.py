#!/usr/bin/env python3
"""Computes how long a job takes on many workers, by how many parts there are to a worker.

    makespan.py                                    # the table of docs/cluster.md
    makespan.py --frames 172800 --rate 3 --workers 1000 --start 3 --slow 0.01 --parts 1,2,4,8,16

List scheduling: whoever is free takes the next part. A part costs its start, and its frames at the worker's
rate, times a factor of its content (log-normal, since some scenes are harder). Some workers are slow. With
backup tasks, the rule of ray_job.py: a part that runs for longer than max(--late, 4 x median) goes out once
more to a worker that is free, and the first result counts. Means of several seeds, in seconds.
"""

import argparse
import heapq
import random
import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """What is computed."""

    seconds: float  # of one usual worker for all frames
    workers: int
    start: float
    spread: float  # sigma of the logarithm of a part's cost
    slow: float  # share of slow workers
    slowness: float
    late: float


def makespan(job: Job, parts: int, has_backups: bool, seed: int) -> float:
    """Seconds from the beginning until all parts are done."""
    chance = random.Random(seed)
    mean = job.seconds / parts
    # exp(-spread^2 / 2) keeps the mean of a log-normal at one.
    costs = [mean * chance.lognormvariate(-(job.spread**2) / 2, job.spread) for _ in range(parts)]
    paces = [job.slowness if k < job.slow * job.workers else 1.0 for k in range(job.workers)]
    chance.shuffle(paces)
    waiting = list(range(parts))[::-1]
    free = list(range(job.workers))[::-1]
    # What happens: the end of a part on a worker, or the moment at which one is late.
    events: list[tuple[float, int, int, int]] = []  # time, kind (0 end, 1 late), part, worker
    done: set[int] = set()
    took: list[float] = []
    overdue: list[int] = []
    now = last = 0.0

    def begin(part: int, worker: int) -> None:
        length = (job.start + costs[part]) * paces[worker]
        heapq.heappush(events, (now + length, 0, part, worker))
        if has_backups:
            # The median of what is done so far. In the beginning the mean stands for it.
            median = statistics.median(took[-1001:]) if took else job.start + mean
            heapq.heappush(events, (now + max(job.late, 4 * median), 1, part, worker))

    while len(done) < parts:
        while free and (waiting or overdue):
            part = waiting.pop() if waiting else overdue.pop()
            if part not in done:
                begin(part, free.pop())
        now, kind, part, worker = heapq.heappop(events)
        if kind == 0:
            free.append(worker)
            took.append((job.start + costs[part]) * paces[worker])
            last = now if part not in done else last
            done.add(part)
        elif part not in done:
            overdue.append(part)
    return last


def main() -> None:
    """Prints the table as Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add(
        "--frames",
        type=int,
        default=172_800,
        help="frames of the movie [default: 172800, 2 hours at 24 a second]",
    )
    add("--rate", type=float, default=3, help="frames a second of a worker [default: 3]")
    add("--workers", type=int, default=1000, help="[default: 1000]")
    add("--start", type=float, default=3, help="seconds before a part's first frame [default: 3]")
    add("--spread", type=float, default=0.3, help="sigma of the logarithm of a part's cost [default: 0.3]")
    add("--slow", type=float, default=0.01, help="share of slow workers [default: 0.01]")
    add("--slowness", type=float, default=5, help="how many times slower they are [default: 5]")
    add(
        "--late",
        type=float,
        default=60,
        help="a part is late after so many seconds at the earliest [default: 60]",
    )
    add("--parts", default="1,2,4,8,16", help="parts a worker [default: 1,2,4,8,16]")
    add("--seeds", type=int, default=5, help="[default: 5]")
    wanted = parser.parse_args()
    numbers = [int(number) for number in wanted.parts.split(",")]

    def row(title: str, slow: float, has_backups: bool) -> str:
        job = Job(
            wanted.frames / wanted.rate,
            wanted.workers,
            wanted.start,
            wanted.spread,
            slow,
            wanted.slowness,
            wanted.late,
        )
        cells = []
        for number in numbers:
            times = [
                makespan(job, number * wanted.workers, has_backups, seed) for seed in range(wanted.seeds)
            ]
            cells.append(f"{statistics.fmean(times):.0f}")
        return f"| {title} | " + " | ".join(cells) + " |"

    print("| parts a worker | " + " | ".join(map(str, numbers)) + " |")
    print("|---" * (len(numbers) + 1) + "|")
    print(row("makespan, s", wanted.slow, False))
    print(row("with backup tasks, s", wanted.slow, True))
    print(row("no slow workers, s", 0, False))


if __name__ == "__main__":
    main()
