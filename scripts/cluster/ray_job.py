#!/usr/bin/env python3
"""Makes the parts of framepipe jobs on a Ray cluster, and joins them.

    pip install ray                                                 # for `ray job submit`: 'ray[default]'
    framepipe plan in.mkv out.mkv job --filter gaussian:sigma=2 --encoder ffv1 --parts 400
    ray job submit --working-dir scripts/cluster -- python ray_job.py /shared/job --gpus 1 --cpus 8
    python ray_job.py job --local                                   # on this machine alone
    python ray_job.py job --local -- in.mkv out.mkv --filter box:5  # plans, too, if there is no plan
    python ray_job.py clips/*.job --per-task 20                     # many short jobs

Job folders, inputs and outputs lie on a file system that all nodes see, and so does the program framepipe. Or
Ray brings it, in the wheel of the Python package, to nodes that have nothing:

    ray job submit --working-dir scripts/cluster --runtime-env-json '{"py_modules": ["framepipe-....whl"]}' \\
        -- python ray_job.py /shared/job

The same command goes on with what is missing after any end, and may run twice at a time: the disk decides.

Ray only says who makes which part. A task runs `framepipe part JOB N`, whose exit code decides: 0, done; 75,
tried again, three times; 1 and 2, final, and listed at the end while the rest goes on.

A cut link can keep Ray waiting without end for a task that is done or can never be, and with it all tasks of
the same scheduling key. So a part that is late goes out once more, under another key, and not to nodes from
which nothing came since, though Ray takes them for alive. The first result counts, and so does a record on
disk of which Ray says nothing. Where nothing moves for --stall seconds, this ends with 75.

Exit code: 0, all done; 1, some parts or joins failed for good; 2, wrong use; 75, start it again.
"""

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
import ray  # noqa: E402

ELSEWHERE = 75
LOST_TRIES = 10  # for parts whose worker or node was lost, which is rarely their own fault
COPIES = 4  # of a part that are under way at a time
LOOK = 5.0  # seconds from one look at the disk to the next


class Item(NamedTuple):
    """A part of a job."""

    job: str
    part: int


class Outcome(NamedTuple):
    """What became of a part in a task."""

    item: Item
    code: int
    seconds: float
    host: str
    node: str
    said: str


@dataclass
class Task:
    """What Ray was given."""

    items: list[Item]
    began: float
    late: bool = False


def command_of(program: str) -> list[str]:
    """How this node calls the program: by its path, or in the Python package, where only that is there."""
    if shutil.which(program) is None and program == "framepipe" and importlib.util.find_spec("framepipe"):
        return [sys.executable, "-m", "framepipe"]
    return [program]


def make(program: str, items: list[Item], options: list[str]) -> list[Outcome]:
    """Makes parts one after another; runs on a worker, with the cards that Ray gave it."""
    outcomes = []
    node = ray.get_runtime_context().get_node_id()
    for item in items:
        began = time.monotonic()
        part = ["part", "--quiet", "--die-with-parent", *options, "--", item.job, str(item.part)]
        command = [*command_of(program), *part]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True)
            # A process that a signal ended may go well elsewhere.
            code = done.returncode if done.returncode >= 0 else ELSEWHERE
            said = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
        except OSError as cause:
            code, said = ELSEWHERE, str(cause)
        outcomes.append(
            Outcome(item, code, time.monotonic() - began, os.uname().nodename, node, said[-2000:])
        )
    return outcomes


def read_plan(job: str) -> dict[str, Any]:
    """The plan of a job."""
    plan: dict[str, Any] = json.loads(Path(job, "plan.json").read_text())
    return plan


def lengths(plan: dict[str, Any]) -> list[float]:
    """How long each part is, in seconds, with 25 images a second; the mean where a plan leaves it open."""
    known: list[float | None] = []
    for part in plan["parts"]:
        kind, extent = next(iter(part["extent"].items()))
        begin, end = extent["begin"], extent["end"]
        begin = plan["start"] if begin is None else begin
        tick = 1 / 25 if kind == "frames" else plan["time_base"][0] / plan["time_base"][1]
        known.append(None if end is None else (end - begin) * tick)
    mean = statistics.fmean([length for length in known if length is not None] or [1.0])
    return [mean if length is None else length for length in known]


class Driver:
    """Gives parts out until each is done or has failed for good."""

    def __init__(self, wanted: argparse.Namespace) -> None:
        self.wanted = wanted
        self.options = part_options(wanted)
        self.remote = ray.remote(num_gpus=wanted.gpus, max_retries=0)(make)
        self.live: dict[Any, Task] = {}
        self.queue: deque[Item] = deque()
        self.left: dict[str, set[int]] = {}  # parts that are neither done nor given up, job by job
        self.failed: dict[Item, Outcome] = {}
        self.tries: Counter[Item] = Counter()
        self.lost: Counter[Item] = Counter()
        self.copies: Counter[Item] = Counter()  # how often each part is under way
        self.refused: dict[Item, set[str]] = {}  # nodes on which it ended with 75
        self.took: list[float] = []
        self.key = 1
        self.nodes: set[str] = set()  # that Ray takes for alive, and that have room for a task
        self.avoided: set[str] = set()
        self.heard: dict[str, float] = {}  # when a result came from each node, or it was seen first
        self.total = self.done = 0
        self.moved = self.looked = time.monotonic()
        self.key_changed = 0.0
        self.signs: list[tuple[str, int]] = []
        self.joins: dict[str, Future[subprocess.CompletedProcess[str]]] = {}
        self.pool, self.joiners = ThreadPoolExecutor(8), ThreadPoolExecutor(4)

    def say(self, event: str, text: str, **facts: Any) -> None:
        """A line for people, or an object for programs."""
        if self.wanted.json:
            text = json.dumps({"event": event, "done": self.done, "total": self.total, **facts})
        print(text, flush=True)

    def status(self, job: str) -> dict[str, Any]:
        """What is on disk of a job."""
        command = [*command_of(self.wanted.framepipe), "status", "--json", "--", job]
        answer = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        found: dict[str, Any] = json.loads(answer.stdout)
        return found

    def begin(self) -> None:
        """Finds what is to be made, the longest first."""
        jobs = self.wanted.jobs
        waiting: list[tuple[float, Item]] = []
        for job, found in zip(jobs, self.pool.map(self.status, jobs), strict=True):
            plan = read_plan(job)
            if found["joined"]:
                self.say("there", f"{job}: {plan['output']} is there", job=job)
                continue
            each = lengths(plan)
            self.left[job] = set(found["missing"])
            waiting += [(each[part], Item(job, part)) for part in found["missing"]]
            self.total += found["parts"]
            self.done += found["done"]
        waiting.sort(key=lambda pair: -pair[0])
        self.queue.extend(item for _, item in waiting)
        self.say("begin", f"{self.done}/{self.total} parts are there")
        for job in list(self.left):
            self.join_if_complete(job)

    def slots(self) -> int:
        """How many tasks the cluster can run at a time, as it is now."""
        wanted = {"CPU": self.wanted.cpus, "GPU": self.wanted.gpus}
        slots = 0
        before, self.nodes = self.nodes, set()
        nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
        for node in nodes:
            if not node["Alive"]:
                continue
            there, name = node["Resources"], node["NodeID"]
            room = int(min(there.get(kind, 0) // amount for kind, amount in wanted.items() if amount > 0))
            if room >= 1:
                self.nodes.add(name)
                self.heard.setdefault(name, time.monotonic())
                slots += room if name not in self.avoided else 0
        # What waits for a node that is gone shall hold up nothing else.
        self.key += not before <= self.nodes
        return slots

    def suspect(self, since: float) -> None:
        """From now on keeps away from nodes of which nothing was heard since then, unless all are such."""
        silent = {name for name in self.nodes if self.heard[name] < since}
        self.avoided = silent if silent < self.nodes else set()

    def is_open(self, item: Item) -> bool:
        return item.part in self.left.get(item.job, ())

    def submit(self, items: list[Item]) -> None:
        away = self.avoided.union(*(self.refused.get(item, ()) for item in items)) & self.nodes
        labels = {"ray.io/node-id": f"!in({','.join(sorted(away))})"} if away and away < self.nodes else {}
        # A byte of memory more is another scheduling key.
        task = self.remote.options(num_cpus=self.wanted.cpus, memory=self.key, label_selector=labels)
        reference = task.remote(self.wanted.framepipe, items, self.options)
        self.live[reference] = Task(items, time.monotonic())
        self.copies.update(items)

    def fill(self) -> None:
        """Keeps two tasks a slot under way, so that no slot waits and slow nodes hoard nothing."""
        room = max(1, 2 * self.slots()) - sum(not task.late for task in self.live.values())
        while room > 0 and self.queue:
            items: list[Item] = []
            while self.queue and len(items) < self.wanted.per_task:
                item = self.queue.popleft()
                items += [item] * self.is_open(item)
            if items:
                self.submit(items)
                room -= 1

    def take(self, reference: Any) -> None:
        """Takes what Ray says of a task."""
        task = self.live.pop(reference)
        self.copies.subtract(task.items)
        try:
            outcomes: list[Outcome] = ray.get(reference, timeout=10)
            if any(outcome.code == 0 for outcome in outcomes):
                self.took.append(time.monotonic() - task.began)
            self.heard[outcomes[0].node] = time.monotonic()
            self.avoided.discard(outcomes[0].node)
        except (ray.exceptions.RayError, TimeoutError) as cause:
            self.look({item.job for item in task.items if self.is_open(item)})
            reason = type(cause).__name__
            for item in filter(self.is_open, task.items):
                self.lost[item] += 1
                outcome = Outcome(item, ELSEWHERE, 0.0, "", "", f"its worker was lost ({reason})")
                self.again(outcome, self.lost[item] < LOST_TRIES)
            return
        for outcome in filter(lambda outcome: self.is_open(outcome.item), outcomes):
            if outcome.code == 0:
                self.finish(outcome.item, outcome.seconds, outcome.host)
                continue
            self.tries[outcome.item] += 1
            self.refused.setdefault(outcome.item, set()).add(outcome.node)
            self.again(outcome, outcome.code == ELSEWHERE and self.tries[outcome.item] < self.wanted.tries)

    def again(self, outcome: Outcome, is_worth_it: bool) -> None:
        """Puts a part back, or gives it up once no copy of it is under way."""
        item = outcome.item
        facts = {"job": item.job, "part": item.part, "code": outcome.code, "said": outcome.said}
        if is_worth_it:
            self.say("again", f"part {item.part} of {item.job} again: {outcome.said}", **facts)
            self.queue.appendleft(item)
        elif self.copies[item] <= 0 or outcome.code != ELSEWHERE:
            self.left[item.job].discard(item.part)
            self.failed[item] = outcome
            self.say("failed", f"part {item.part} of {item.job} failed: {outcome.said}", **facts)

    def finish(self, item: Item, seconds: float | None, host: str | None) -> None:
        """Counts a part as done, and ends copies of it."""
        self.left[item.job].discard(item.part)
        self.done += 1
        self.moved = time.monotonic()
        how = "found on disk" if seconds is None else f"in {seconds:.1f} s on {host}"
        percent = 100 * self.done // self.total
        text = f"{self.done}/{self.total} parts, {percent} %: part {item.part} of {item.job} {how}"
        self.say("part", text, job=item.job, part=item.part, seconds=seconds, host=host)
        for reference, task in self.live.items():
            if item in task.items and not any(map(self.is_open, task.items)):
                ray.cancel(reference, force=True)
        self.join_if_complete(item.job)

    def look(self, jobs: set[str]) -> None:
        """Counts what is on disk, whatever Ray says."""
        jobs = {job for job in jobs if self.left.get(job)}
        try:
            for job, found in zip(jobs, self.pool.map(self.status, jobs), strict=True):
                for part in sorted(self.left[job].difference(found["missing"])):
                    self.finish(Item(job, part), None, None)
        except subprocess.CalledProcessError:
            return  # It has said why; the next look may go better.

    def watch(self) -> bool:
        """Gives late parts out once more. False if nothing has moved for too long."""
        now = time.monotonic()
        # How long parts take is not known before one is done.
        late = max(self.wanted.late, 4 * statistics.median(self.took)) if self.took else 10 * self.wanted.late
        overdue = [task for task in self.live.values() if not task.late and now - task.began > late]
        if overdue or now - self.moved > LOOK and now - self.looked > LOOK:
            self.looked = now
            self.look({item.job for task in self.live.values() for item in task.items})
            signs = signs_of_life({job for job, left in self.left.items() if left})
            self.moved = now if signs != self.signs else self.moved
            self.signs = signs
        if self.avoided and now - self.key_changed > late:  # They get another chance.
            self.heard.update(dict.fromkeys(self.avoided, now))
            self.avoided = set()
        for task in overdue:
            task.late = True
            items = [item for item in task.items if self.is_open(item) and self.copies[item] < COPIES]
            if items and now - self.key_changed > late / 4:
                self.key, self.key_changed = self.key + 1, now
                self.suspect(task.began)
            for item in items:
                text = f"part {item.part} of {item.job} is late and goes out once more"
                self.say("late", text, job=item.job, part=item.part)
                self.submit([item])
        return bool(time.monotonic() - self.moved < self.wanted.stall)

    def join_if_complete(self, job: str) -> None:
        is_complete = not self.left[job] and not any(item.job == job for item in self.failed)
        if is_complete and not self.wanted.no_join and job not in self.joins:
            keep = ["--keep-parts"] * self.wanted.keep_parts
            command = [*command_of(self.wanted.framepipe), "join", *keep, "--", job]
            self.joins[job] = self.joiners.submit(subprocess.run, command, capture_output=True, text=True)

    def run(self) -> int:
        """Makes all that can be made; the exit code."""
        self.begin()
        if self.queue and not self.slots():
            self.say("waiting", "no node of the cluster has what a task needs; waiting for one")
        is_moving = True
        while is_moving and any(self.left.values()):
            self.fill()
            for reference in ray.wait(list(self.live), timeout=1, fetch_local=False)[0] if self.live else []:
                self.take(reference)
            is_moving = self.watch()
        codes = {outcome.code for outcome in self.failed.values()}
        for job, joined in self.joins.items():
            result = joined.result()
            codes.add(result.returncode)
            self.say("join", f"{job}: {result.stderr.strip()}", job=job, code=result.returncode)
        for item, outcome in sorted(self.failed.items()):
            text = f"not made: part {item.part} of {item.job}: {outcome.said}"
            self.say("given-up", text, job=item.job, part=item.part, code=outcome.code, said=outcome.said)
        if not is_moving:
            text = f"nothing has moved for {self.wanted.stall:.0f} s; the same command goes on from here"
            self.say("stall", text)
        final = codes - {0, ELSEWHERE}
        code = 1 if final else ELSEWHERE if codes - {0} or not is_moving else 0
        self.say("end", f"{self.done}/{self.total} parts; exit code {code}", code=code)
        return code


def signs_of_life(jobs: set[str]) -> list[tuple[str, int]]:
    """What changes as long as any worker writes: sizes of files under way, and the folders of images."""
    found: list[tuple[str, int]] = []
    for job in sorted(jobs):
        for path in sorted(Path(job, "parts").glob(".*")):
            try:
                found.append((path.name, path.stat().st_size))
            except OSError:  # It was renamed meanwhile.
                continue
        output = Path(read_plan(job)["output"])
        folder = output if output.is_dir() else output.parent
        found.append((str(folder), folder.stat().st_mtime_ns if folder.is_dir() else 0))
    return found


def part_options(wanted: argparse.Namespace) -> list[str]:
    """The engine's options: the card that Ray gave is the first one that the process sees."""
    options = shlex.split(wanted.part_options)
    if wanted.engine == "cuda" or wanted.engine is None and wanted.gpus:
        return ["--engine=cuda", "--device=0", *options]
    return [f"--engine={wanted.engine or 'cpu'}", f"--threads={max(1, int(wanted.cpus))}", *options]


def copy(source: str, target: str) -> None:
    """Copies a file between a path and a URL of any kind that fsspec knows (s3, gs, az, http, ...)."""
    import fsspec  # only needed here

    work = target if "://" in target else f"{target}.copying"
    with fsspec.open(source, "rb") as read, fsspec.open(work, "wb") as write:
        shutil.copyfileobj(read, write, 16 << 20)
    if work != target:
        os.replace(work, target)


def parse(words: list[str]) -> argparse.Namespace:
    """The command line; what follows `--` is for `framepipe plan`."""
    description, plan = (__doc__ or ""), []
    if "--" in words:
        words, plan = words[: words.index("--")], words[words.index("--") + 1 :]
    parser = argparse.ArgumentParser(
        usage="%(prog)s JOB... [options] [-- INPUT OUTPUT --filter ... for `framepipe plan`]",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    # fmt: off
    add("jobs", metavar="JOB", nargs="+", help="job folders")
    add("--local", action="store_true", help="start Ray on this machine for this run")
    add("--address", help="the cluster [default: the one that RAY_ADDRESS names or that runs here]")
    add("--gpus", type=float, default=0, help="cards a task; 0.5 is two parts a card [default: 0]")
    add("--cpus", type=float, default=1, help="cores a task, and threads of the CPU engine [default: 1]")
    add("--engine", help="framepipe's engine [default: cuda with --gpus, else cpu]")
    add("--part-options", default="", metavar="TEXT", help="more options of `framepipe part`: =--allow-mixed")
    add("--per-task", type=int, default=1, metavar="N", help="parts a task, for many short ones [default: 1]")
    add("--tries", type=int, default=3, help="how often a part is tried that ends with 75 [default: 3]")
    add("--late", type=float, default=60, metavar="S",
        help="a part is late after S seconds and 4 times the median [default: 60]")
    add("--stall", type=float, default=600, metavar="S",
        help="end with 75 if nothing moves for S seconds [default: 600]")
    add("--no-join", action="store_true", help="only make the parts")
    add("--keep-parts", action="store_true", help="leave the parts once they are joined")
    add("--fetch", nargs=2, action="append", default=[], metavar=("URL", "PATH"),
        help="copy a file to the shared file system first, unless it is there (needs fsspec)")
    add("--put", nargs=2, action="append", default=[], metavar=("PATH", "URL"),
        help="copy a file to an object store once all is joined (needs fsspec)")
    add("--framepipe", default=os.environ.get("FRAMEPIPE", "framepipe"), metavar="PATH",
        help="the program, by the same path on all nodes [default: $FRAMEPIPE, or framepipe on the PATH or in"
        " the Python package]")
    add("--json", action="store_true", help="print an object a line, for programs")
    # fmt: on
    wanted = parser.parse_args(words)
    if wanted.per_task < 1 or wanted.tries < 1 or wanted.cpus < 0 or not wanted.cpus + wanted.gpus > 0:
        parser.error("--per-task and --tries are at least 1, and a task needs a core or a card")
    if not shutil.which(command_of(wanted.framepipe)[0]):
        parser.error(f"there is no program {wanted.framepipe}; say --framepipe PATH")
    if "/" in wanted.framepipe:  # else each node looks on its own PATH
        wanted.framepipe = str(Path(wanted.framepipe).resolve())
    wanted.jobs = list(dict.fromkeys(str(Path(job).resolve()) for job in wanted.jobs))
    if plan and len(wanted.jobs) != 1:
        parser.error("a plan is of one job; plan several with `framepipe plan`")
    wanted.plan = plan
    return wanted


def prepare(wanted: argparse.Namespace) -> None:
    """Brings inputs here and plans."""
    for url, path in wanted.fetch:
        if not Path(path).exists():
            copy(url, path)
    if wanted.plan and not Path(wanted.jobs[0], "plan.json").exists():
        ends, options = wanted.plan[:2], wanted.plan[2:]
        subprocess.run([*command_of(wanted.framepipe), "plan", *ends, wanted.jobs[0], *options], check=True)


def main() -> int:
    """Runs jobs; the exit code."""
    wanted = parse(sys.argv[1:])
    try:
        prepare(wanted)
        address = "local" if wanted.local else wanted.address or "auto"
        ray.init(address=address, include_dashboard=False if wanted.local else None, log_to_driver=False)
        driver = Driver(wanted)
        code = driver.run()
        if code == 0:
            for path, url in wanted.put:
                copy(path, url)
                driver.say("put", f"{path} is at {url}", path=path, url=url)
        return code
    except subprocess.CalledProcessError as failure:  # framepipe has said why
        return failure.returncode if failure.returncode > 0 else ELSEWHERE
    except (ConnectionError, FileNotFoundError) as cause:
        print(f"ray_job: {cause}", file=sys.stderr)
        return 2
    except ray.exceptions.RayError as cause:  # as the loss of the head
        print(f"ray_job: {cause}", file=sys.stderr)
        return ELSEWHERE
    except KeyboardInterrupt:
        print("stopped; the same command goes on with the parts that are missing", file=sys.stderr)
        return 130


if __name__ == "__main__":
    end = main()
    # Ray may wait for a node that is cut off; the workers end with the driver in any case.
    closing = threading.Thread(target=ray.shutdown, daemon=True)
    closing.start()
    closing.join(10)
    sys.stdout.flush()
    os._exit(end)
