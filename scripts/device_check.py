"""The checks of scripts/device-check, which says what they are for."""

import argparse
import json
import os
import pathlib
import platform
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PASSED, FOUND, FAILED = 0, 1, 4
NO_DEVICE = FAILED
RANKS = 2


class CheckFailed(Exception):
    """What was seen instead of what was expected."""


class Programs:
    """The build under test."""

    def __init__(self, preset, deadline):
        build = ROOT / "build" / preset
        self.verbatim = build / "cli" / "verbatim"
        self.cuda_test = build / "tests" / "trainer" / "cuda_test"
        self.deadline = deadline
        self.gpus = 0

    def run(self, program, *arguments):
        left = max(1.0, self.deadline - time.monotonic())
        try:
            return subprocess.run([str(program), *map(str, arguments)], capture_output=True,
                                  text=True, timeout=left, cwd=ROOT, check=False)
        except subprocess.TimeoutExpired:
            raise CheckFailed(f"{program.name} {' '.join(map(str, arguments))}: no time left") from None
        except OSError as error:
            raise CheckFailed(f"{program}: {error.strerror}") from None

    def expect(self, code, *arguments):
        """Runs verbatim; its standard output."""
        result = self.run(self.verbatim, *arguments)
        if result.returncode == code:
            return result.stdout
        shown = (result.stderr or result.stdout).strip()[-800:]
        raise CheckFailed(f"verbatim {' '.join(map(str, arguments))}: exit code "
                          f"{result.returncode} instead of {code}: {shown}")

    def start_ranks(self, *arguments):
        """Starts verbatim as RANKS processes of one run. Where they share a GPU, NCCL has to take
        them for processes of several hosts: it refuses two ranks on one GPU of a host."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        processes = []
        for rank in map(str, range(RANKS)):
            env = os.environ | {"RANK": rank, "WORLD_SIZE": str(RANKS), "LOCAL_RANK": rank,
                                "LOCAL_WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
                                "MASTER_PORT": port}
            if self.gpus < RANKS:
                env["NCCL_HOSTID"] = f"verbatim-rank-{rank}"
            processes.append(subprocess.Popen(
                [str(self.verbatim), *map(str, arguments)], cwd=ROOT, text=True, env=env,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        return processes

    def end_ranks(self, processes):
        """Exit code and standard error of each. Kills those that do not end in time."""
        ended = []
        try:
            for process in processes:
                left = max(1.0, self.deadline - time.monotonic())
                _, text = process.communicate(timeout=left)
                ended.append((process.returncode, text))
            return ended
        except subprocess.TimeoutExpired:
            raise CheckFailed("ranks that do not end: no time left") from None
        finally:
            for process in processes:
                process.kill()
                process.wait()

    def train(self, spec, record, *arguments, device="cuda"):
        """Trains on all GPUs, or one; subnets per second."""
        begin = time.monotonic()
        self.expect(PASSED, "train", spec, "-o", record, "--device", device, "--quiet", "--force",
                    *arguments)
        subnets = int(arguments[arguments.index("--subnets") + 1])
        return round(subnets / (time.monotonic() - begin), 2)


DIGITS, TEXT = "examples/digits.json", "examples/text.json"


def kernels(programs, folder):
    """Digests and dropout masks have the CPU's bits; streams order what they should."""
    report = folder / "cuda_test.json"
    result = programs.run(programs.cuda_test, f"--gtest_output=json:{report}")
    if result.returncode != PASSED:
        raise CheckFailed(result.stdout.strip()[-1500:])
    return {"tests": json.loads(report.read_text())["tests"]}


def layouts(spec, subnets, stages):
    """Every layout leaves the record of one stage, one subnet at a time."""

    def check(programs, folder):
        reference = folder / "reference.db"
        programs.train(spec, reference, "--subnets", str(subnets), "--policy", "sequential",
                       "--stages", "1", "--in-flight", "1", "--record", "full")
        facts = {}
        for count in stages:
            record = folder / f"stages{count}.db"
            facts[f"subnets_per_s_{count}_stages"] = programs.train(
                spec, record, "--subnets", str(subnets), "--stages", count, "--in-flight",
                2 * count, "--record", "full")
            programs.expect(PASSED, "diff", reference, record)
        return facts

    check.__doc__ = layouts.__doc__
    return check


def repetition(programs, folder):
    """The same command twice leaves the same record."""
    for name in ("one.db", "two.db"):
        programs.train(DIGITS, folder / name, "--subnets", "60", "--stages", "3")
    programs.expect(PASSED, "diff", folder / "one.db", folder / "two.db")


def reexecution(programs, folder):
    """A record equals its sequential re-execution, and a replay on other stages."""
    record = folder / "run.db"
    programs.train(DIGITS, record, "--subnets", "60", "--stages", "4")
    programs.expect(PASSED, "verify", record, "--reexecute", "all")
    programs.expect(PASSED, "replay", record, "--stages", "3")


def checkpoints(programs, folder):
    """A run that goes on from a checkpoint ends as one that was never stopped."""
    whole, part = folder / "whole.db", folder / "part.db"
    programs.train(DIGITS, whole, "--subnets", "80", "--stages", "2")
    process = subprocess.Popen(
        [str(programs.verbatim), "train", DIGITS, "-o", str(part), "--device", "cuda", "--quiet",
         "--subnets", "80", "--stages", "2", "--checkpoint-every", "20"],
        cwd=ROOT, stderr=subprocess.DEVNULL)
    # Killed once it has begun to write a checkpoint.
    while process.poll() is None and not list(folder.glob("part.db.checkpoints/*")):
        time.sleep(0.05)
    process.kill()
    process.wait()
    state = json.loads(programs.expect(PASSED, "show", part, "--format", "json"))
    if state["status"] != "complete":
        programs.expect(PASSED, "resume", part, "--stages", "4", "--quiet")
    programs.expect(PASSED, "diff", whole, part)
    return {"status_when_killed": state["status"], "subnets_when_killed": state["subnets"]}


def fault(programs, folder):
    """A fault made on purpose is found: what finds nothing proves nothing."""
    sound, faulty = folder / "sound.db", folder / "faulty.db"
    programs.train(DIGITS, sound, "--subnets", "40", "--stages", "2")
    programs.train(DIGITS, faulty, "--subnets", "40", "--stages", "2", "--inject", "lost-update")
    programs.expect(FOUND, "diff", sound, faulty)
    programs.expect(FOUND, "verify", faulty, "--reexecute", "all")


def negative_control(programs, folder):
    """A schedule without causality is found by the audit."""
    record = folder / "async.db"
    programs.train(DIGITS, record, "--subnets", "60", "--stages", "4", "--policy", "asynchronous",
                   device="cuda:0")
    programs.expect(FOUND, "verify", record)


def ranks(programs, folder):
    """Two processes that send each other tensors by NCCL leave the record of one."""
    reference, record = folder / "reference.db", folder / "ranks.db"
    arguments = ("--device", "cuda", "--quiet", "--subnets", "60", "--record", "full")
    programs.train(DIGITS, reference, "--subnets", "60", "--policy", "sequential", "--stages", "1",
                   "--in-flight", "1", "--record", "full")
    begin = time.monotonic()
    processes = programs.start_ranks("train", DIGITS, "-o", record, "--stages", "4",
                                     "--in-flight", "8", *arguments)
    for rank, (code, text) in enumerate(programs.end_ranks(processes)):
        if code != PASSED:
            raise CheckFailed(f"rank {rank}: exit code {code}: {text[-800:]}")
    rate = round(60 / (time.monotonic() - begin), 2)
    programs.expect(PASSED, "diff", reference, record)
    programs.expect(PASSED, "verify", record, "--reexecute", "all")
    return {"subnets_per_s_2_ranks": rate, "gpus": programs.gpus}


def lost_rank(programs, folder):
    """A rank whose peer is killed in the middle ends, and says whom it lost."""
    record = folder / "lost.db"
    processes = programs.start_ranks("train", DIGITS, "-o", record, "--stages", "4", "--quiet",
                                     "--device", "cuda", "--subnets", "100000",
                                     "--peer-timeout", "10")
    shown = {"subnets": 0}
    while shown["subnets"] < 20 and all(process.poll() is None for process in processes):
        time.sleep(0.2)
        if programs.deadline < time.monotonic():
            break
        if record.exists():
            result = programs.run(programs.verbatim, "show", record, "--format", "json")
            shown = json.loads(result.stdout) if result.returncode == PASSED else shown
    processes[1].kill()
    begin = time.monotonic()
    code, text = programs.end_ranks(processes)[0]
    if code != FAILED or "rank 1" not in text:
        raise CheckFailed(f"rank 0: exit code {code}: {text[-800:]}")
    return {"seconds_to_end": round(time.monotonic() - begin, 1), "subnets": shown["subnets"]}


def recording(programs, folder):
    """What recording costs, in subnets per second. Fails on nothing but an error."""
    return {f"subnets_per_s_record_{level}": programs.train(
        DIGITS, folder / "cost.db", "--subnets", "120", "--stages", "2", "--record", level)
        for level in ("off", "weights", "full")}


CHECKS = {
    "kernels": kernels,
    "layouts-images": layouts(DIGITS, 60, (1, 2, 4)),
    "layouts-text": layouts(TEXT, 24, (2, 3)),
    "repetition": repetition,
    "re-execution": reexecution,
    "checkpoints": checkpoints,
    "fault": fault,
    "negative-control": negative_control,
    "ranks": ranks,
    "lost-rank": lost_rank,
    "recording": recording,
}


def describe(programs):
    """The machine as verbatim sees it."""
    if not programs.verbatim.exists():
        return None, f"there is no build: {programs.verbatim} (cmake --build --preset dev)"
    engine = json.loads(programs.expect(PASSED, "doctor", "--format", "json"))["engine"]
    devices = [device for device in engine["devices"] if device.startswith("cuda")]
    programs.gpus = len(devices)
    if not devices:
        return engine, f"no device: CUDA is {engine.get('cuda') or engine['problem']}"
    return engine, None


def commit():
    result = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True,
                            capture_output=True, check=False)
    return result.stdout.strip() or "unknown"


def run_check(check, programs):
    begin = time.monotonic()
    entry = {"what": check.__doc__, "passed": False}
    if begin >= programs.deadline:
        return entry | {"detail": "left out: no time left"}
    try:
        with tempfile.TemporaryDirectory(prefix="device-check-") as folder:
            entry["facts"] = check(programs, pathlib.Path(folder)) or {}
        entry["passed"] = True
    except CheckFailed as failure:
        entry["detail"] = str(failure)
    return entry | {"seconds": round(time.monotonic() - begin, 1)}


def parse():
    parser = argparse.ArgumentParser(prog="scripts/device-check")
    parser.add_argument("--build", default="dev")
    parser.add_argument("-o", dest="output", default="device-check.json", type=pathlib.Path)
    parser.add_argument("--minutes", default=8.0, type=float)
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def main():
    options = parse()
    if options.list:
        for name, check in CHECKS.items():
            print(f"{name:18} {check.__doc__}")
        return PASSED
    programs = Programs(options.build, time.monotonic() + 60 * options.minutes)
    report = {"format": "verbatim-device-check", "version": 1, "commit": commit(),
              "host": platform.node(),
              "started_utc": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "checks": {}}
    try:
        report["engine"], problem = describe(programs)
    except CheckFailed as failure:
        report["engine"], problem = None, str(failure)
    report["problem"] = problem
    for name, check in ({} if problem else CHECKS).items():
        entry = report["checks"][name] = run_check(check, programs)
        verdict = "passed" if entry["passed"] else "FAILED"
        print(f"  {verdict}  {name:18} {entry.get('detail') or entry.get('facts') or ''}", flush=True)
    report["passed"] = not problem and all(entry["passed"] for entry in report["checks"].values())
    options.output.write_text(json.dumps(report, indent=2) + "\n")
    if problem:
        print(f"device-check: {problem}", file=sys.stderr)
        return NO_DEVICE
    print(f"{'all checks passed' if report['passed'] else 'checks failed'}; {options.output}")
    return PASSED if report["passed"] else FOUND


if __name__ == "__main__":
    sys.exit(main())
