#!/usr/bin/env python3
"""A run that loses a rank ends on all others, which say whom they lost; resumed on another number
of ranks it is the run that nobody disturbed.

Ranks are killed, stopped or cut off from the network, in turn, at random moments of joining,
training, checkpointing and ending. VERBATIM_RANK_FAILURES says how many (30 for certainty; by
default 2: one in training, one in joining); VERBATIM_TEST_SEED repeats what a seed drew.
"""

import collections
import contextlib
import itertools
import os
import random
import signal
import socket
import subprocess
import time
import unittest

import hosts
from harness import TIMEOUT_S, LongRunTest, Result, query, run
from ranks import Ranks, run_ranks

FAILURES = int(os.environ.get("VERBATIM_RANK_FAILURES", "2"))
SEED = int(os.environ.get("VERBATIM_TEST_SEED") or random.SystemRandom().randrange(10**6))
SUBNETS = 64
CHECKPOINT_EVERY = 7
OPTIONS = ["--checkpoint-every", CHECKPOINT_EVERY]
PEER_TIMEOUT_S = 3
# Above what the ranks need to get to the rendezvous on a busy machine.
JOIN_TIMEOUT_S = 20
# Where one never comes, all wait as long.
SHORT_JOIN_TIMEOUT_S = 8
SPEC = {
    "training.subnets": SUBNETS,
    "supernet.stem": {"op": "conv", "channels": 8, "delay": 2},
    "supernet.head": {"op": "classifier", "delay": 3},
}
HARMS = ("kill", "stop", "cut")
MOMENTS = ("joining", "training", "checkpoint", "end")
RUN_PORT = 29500


class Case:
    """What happens to which rank of how many, and when."""

    def __init__(self, harm, moment, draw):
        self.harm = harm
        self.moment = moment
        self.ranks = draw.randint(2, 4)
        self.victim = draw.randrange(self.ranks)
        self.joining_s = draw.random()
        self.subnets = draw.randint(1, SUBNETS - 1)
        self.files = draw.randint(1, 30)
        self.ranks_after = draw.choice([n for n in (1, 2, 3) if n != self.ranks])

    def __str__(self):
        return f"{self.harm} rank {self.victim} of {self.ranks}, {self.moment}"


def draw_cases():
    """One in training, one in joining; then harms in turn, each at all moments, in an order that
    the seed draws."""
    draw = random.Random(SEED)
    harms = HARMS if hosts.is_simulated() else HARMS[:2]
    yield Case(draw.choice(harms), "training", draw)
    yield Case(draw.choice(harms), "joining", draw)
    moments = {harm: [] for harm in harms}
    for harm in itertools.cycle(harms):
        if not moments[harm]:
            moments[harm] = draw.sample(MOMENTS, len(MOMENTS))
        yield Case(harm, moments[harm].pop(), draw)


class RankFailures(LongRunTest):
    def setUp(self):
        super().setUp()
        print(f"again with: VERBATIM_TEST_SEED={SEED} VERBATIM_RANK_FAILURES={FAILURES}",
              flush=True)
        self.spec = self.write_spec(SPEC)
        self.figures = collections.Counter()
        self.seconds = collections.defaultdict(list)

    def content(self, record):
        shown = run("show", record, "--format", "json").json()
        return shown["content_digest"], shown["content_root"]

    def arguments(self, join_timeout_s=JOIN_TIMEOUT_S):
        return ["train", self.spec, "-o", self.record, *OPTIONS, "--peer-timeout", PEER_TIMEOUT_S,
                "--join-timeout", join_timeout_s]

    @contextlib.contextmanager
    def started(self, case):
        """The ranks, and a function that cuts the victim off."""
        arguments = self.arguments(
            SHORT_JOIN_TIMEOUT_S if case.moment == "joining" else JOIN_TIMEOUT_S)
        if case.harm != "cut":
            with Ranks(case.ranks, *arguments) as ranks:
                yield ranks, None
            return
        with hosts.Network(case.ranks, seed=SEED) as network:
            each = {rank: {"inside": host.inside} for rank, host in enumerate(network.hosts)}
            env = {"MASTER_ADDR": network.hosts[0].address, "VERBATIM_TOKEN": f"{SEED:032}",
                   "SLURM_STEP_NUM_NODES": str(case.ranks)}
            with Ranks(case.ranks, *arguments, each=each, env=env, port=RUN_PORT) as ranks:
                yield ranks, lambda: network.cut(network.hosts[case.victim])

    def has_come(self, case):
        if case.moment == "training":
            return self.committed(self.record) >= case.subnets
        if case.moment == "checkpoint":
            folder = self.record.with_name(self.record.name + ".checkpoints")
            return sum(1 for _ in folder.rglob("*")) >= case.files
        return self.committed(self.record) == SUBNETS

    def await_moment(self, case, ranks):
        if case.moment == "joining":
            self.pause(ranks, case.joining_s)
            return
        deadline = time.monotonic() + TIMEOUT_S
        while not self.has_come(case):
            self.assertLess(time.monotonic(), deadline, f"{case}: the moment never came")
            if all(process.poll() is not None for process in ranks.processes):
                return
            self.pause(ranks, 0.002)

    def pause(self, ranks, seconds):
        with contextlib.suppress(subprocess.TimeoutExpired):
            ranks.processes[0].wait(timeout=seconds)

    def end(self, case, ranks):
        """By rank, once all have ended; a stopped one goes on when the others have."""
        begin = time.monotonic()
        results = {}
        for rank in sorted(range(case.ranks), key=lambda rank: rank == case.victim):
            process = ranks.processes[rank]
            if rank == case.victim:
                self.seconds[case.harm, case.moment].append(time.monotonic() - begin)
                process.send_signal(signal.SIGCONT)
            out, err = process.communicate(timeout=TIMEOUT_S)
            results[rank] = Result(process.returncode, out, err)
        return results

    def disturb(self, case):
        with self.started(case) as (ranks, cut):
            self.await_moment(case, ranks)
            process = ranks.processes[case.victim]
            if case.harm == "kill":
                process.kill()
            elif case.harm == "stop":
                process.send_signal(signal.SIGSTOP)
            else:
                cut()
            self.check(case, self.end(case, ranks), process.pid)

    def check(self, case, results, pid):
        status = self.status()
        self.note(case, status)
        for rank, result in results.items():
            with self.subTest(case=str(case), rank=rank):
                if rank == case.victim and case.harm == "kill":
                    self.assertIn(result.code, (0, -signal.SIGKILL), str(result))
                    continue
                # Once all subnets are recorded, ranks other than 0 may have left in peace.
                codes = (4,) if self.committed(self.record) < SUBNETS else (0, 4)
                if rank == 0:
                    codes = (0,) if status == "complete" else (4,)
                self.assertIn(result.code, codes, str(result))
                if result.code == 4 and rank != case.victim:
                    self.check_message(case, rank, result, pid)

    def check_message(self, case, rank, result, pid):
        """Names who was lost, and rank 0 says how far the run had come."""
        if not self.record.exists():
            # Whoever never came has told nobody its name, and on a busy machine others are late too.
            says = rf"rank {case.victim}\b|did not join"
            says += "|nobody listens at" if case.victim == 0 else ""
            self.assertRegex(result.err, says, str(result))
            return
        name = f"rank {case.victim} (host {socket.gethostname()}, process {pid})"
        self.assertIn(name, result.err, str(result))
        if rank == 0:
            self.assertRegex(result.err, rf"\d+ of {SUBNETS} subnets had finished", str(result))

    def status(self):
        if not self.record.exists():
            return "no record"
        return query(self.record, "SELECT status FROM run")[0][0]

    def note(self, case, status):
        done = self.committed(self.record)
        self.figures[case.harm] += 1
        self.figures["complete" if status == "complete" else
                     "before the record" if status == "no record" else
                     "before a subnet" if done == 0 else
                     "ending" if done == SUBNETS else "training"] += 1

    def complete(self, case):
        if not self.record.exists():
            results = run_ranks(case.ranks_after, *self.arguments())
        else:
            self.verify(self.record)
            results = run_ranks(case.ranks_after, "resume", self.record, *OPTIONS)
        for result in results:
            self.expect(result, 0)

    def test_failures(self):
        wanted = self.content(self.train(*OPTIONS, "--stages", 2, spec=self.spec, record="one.db"))
        for number, case in zip(range(FAILURES), draw_cases()):
            with self.subTest(number=number, case=str(case)):
                print(case, flush=True)
                self.record = self.folder / f"{number}.db"
                self.disturb(case)
                self.complete(case)
                self.assertEqual(self.content(self.record), wanted)
                self.verify(self.record, says="intact and causal")
        self.print_figures()

    def print_figures(self):
        print(f"{FAILURES} failures: {dict(self.figures)}")
        for (harm, moment), seconds in sorted(self.seconds.items()):
            print(f"{harm}, {moment}: the others had ended after "
                  f"{', '.join(f'{s:.1f}' for s in seconds)} s", flush=True)


if __name__ == "__main__":
    hosts.simulate()
    unittest.main()
