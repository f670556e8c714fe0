"""Starts the program in several processes: as torchrun and mpirun do it, and with the variables of
Slurm set by hand, which needs neither.
"""

import os
import shutil
import socket
import subprocess

from harness import BINARY, TIMEOUT_S, Result, command, environment

# An interpreter that can import torch; ctest sets it.
PYTHON = os.environ.get("VERBATIM_TORCH_PYTHON")
# What other tests' launchers may have left, and what VERBATIM_TOKEN would change.
LAUNCHERS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "VERBATIM_TOKEN")


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def clean(**changes):
    variables = environment(**changes)
    return {name: value for name, value in variables.items()
            if name in changes or name not in LAUNCHERS}


def slurm(rank, ranks, port, **changes):
    """What srun and a job script tell a process on one host."""
    return clean(**{"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(ranks),
                    "SLURM_STEP_NUM_NODES": "1", "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": str(port), **changes})


class Ranks:
    """Processes of one run, started by hand. `each`: a rank's own arguments, variables or host
    (hosts.py), by rank: {1: {"arguments": […], "env": {…}, "inside": […]}}."""

    def __init__(self, ranks, *arguments, each=None, env=None, port=None):
        port = port or free_port()
        self.processes = []
        for rank in range(ranks):
            own = (each or {}).get(rank, {})
            if own.get("absent"):
                continue
            self.processes.append(subprocess.Popen(
                [*own.get("inside", []), *command(own.get("arguments", arguments))],
                env=slurm(rank, ranks, port, **{**(env or {}), **own.get("env", {})}), text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.communicate()

    def results(self):
        """By rank, once all have ended."""
        results = []
        for process in self.processes:
            out, err = process.communicate(timeout=TIMEOUT_S)
            results.append(Result(process.returncode, out, err))
        return results


def run_ranks(ranks, *arguments, **options):
    with Ranks(ranks, *arguments, **options) as started:
        return started.results()


def launch(words, **changes):
    done = subprocess.run(list(map(str, words)), env=clean(**changes), text=True,
                          capture_output=True, timeout=TIMEOUT_S, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def torchrun(processes, *arguments, **changes):
    return launch([PYTHON, "-m", "torch.distributed.run", "--no-python", "--standalone",
                   "--nproc-per-node", processes, BINARY, *arguments], **changes)


def mpirun(processes, *arguments, **changes):
    """Of Open MPI; as root and on few cores too, which it refuses unasked."""
    return launch([shutil.which("mpirun"), "--allow-run-as-root", "--oversubscribe", "-n",
                   processes, BINARY, *arguments],
                  MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()), **changes)
