#!/usr/bin/env python3
"""Makes the parts of a framepipe job on HyperQueue, and joins them.

    pip install hyperqueue
    python hyperqueue_job.py JOB                   # on the server that `hq server start` started
    python hyperqueue_job.py JOB --local 2         # on a server of its own with 2 workers, on this machine
    python hyperqueue_job.py JOB --gpus 1          # a card a part; it sets CUDA_VISIBLE_DEVICES

What is missing is submitted, three times at most, since HyperQueue does not tell exit codes apart. A part
whose worker is lost is started again by HyperQueue itself. Exit code: that of the join, which refuses and
names the parts if any is missing.
"""

import argparse
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from hyperqueue import Client, Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
from hyperqueue.ffi.protocol import ResourceRequest


def missing(program: str, job: Path) -> list[str]:
    """The numbers of the parts that are to be made."""
    command = [program, "status", str(job), "--missing", "--lines"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()


def main() -> int:
    """Runs a job; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("job", type=Path, help="the job folder")
    add("--local", type=int, metavar="N", help="start a server and N workers of --cpus cores here")
    add("--cpus", type=int, default=1, help="cores a part, and threads of the CPU engine [default: 1]")
    add("--gpus", type=float, default=0, help="cards a part [default: 0]")
    add("--framepipe", default=os.environ.get("FRAMEPIPE", "framepipe"), help="the program")
    wanted = parser.parse_args()
    job = wanted.job.resolve()
    engine = ["--engine=cuda", "--device=0"] if wanted.gpus else ["--engine=cpu", f"--threads={wanted.cpus}"]
    needs = ResourceRequest(cpus=wanted.cpus, resources={"gpus/nvidia": wanted.gpus} if wanted.gpus else None)
    with ExitStack() as stack:
        if wanted.local:
            cluster = stack.enter_context(LocalCluster())
            for _ in range(wanted.local):
                cluster.start_worker(WorkerConfig(cores=wanted.cpus))
            client = cluster.client()
        else:
            client = Client()
        for _ in range(3):
            parts = missing(wanted.framepipe, job)
            if not parts:
                break
            work = Job(default_workdir=job, max_fails=None, name="framepipe")
            for part in parts:
                command = [wanted.framepipe, "part", "--quiet", *engine, str(job), part]
                work.program(
                    command, stdout=None, stderr=job / f"part-{part}.log", resources=needs, crash_limit=3
                )
            submitted = client.submit(work)
            client.wait_for_jobs([submitted], raise_on_error=False)
            for number, failed in client.get_failed_tasks(submitted).items():
                print(f"part {parts[number]}: {failed.error}", file=sys.stderr)
    for log in job.glob("part-*.log"):
        if log.stat().st_size == 0:
            log.unlink()
    return subprocess.run([wanted.framepipe, "join", str(job)]).returncode


if __name__ == "__main__":
    sys.exit(main())
