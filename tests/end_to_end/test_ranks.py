#!/usr/bin/env python3
"""Runs in several processes leave the bits of one, whoever starts them, and say what keeps them
from it."""

import re
import signal
import socket
import time
import unittest

from harness import TIMEOUT_S, EndToEndTest, content_digest, query, run, tamper
from ranks import Ranks, mpirun, run_ranks, torchrun

SUBNETS = 24
# Trained stem and head read an earlier version; three candidates of unequal costs, so that balanced
# partitions move layers.
SPEC = {
    "training.subnets": SUBNETS,
    "supernet.stem": {"op": "conv", "channels": 8, "delay": 2},
    "supernet.head": {"op": "classifier", "delay": 3},
}
LONG = {**SPEC, "training.subnets": 4000}
NO_GPU = "--device cuda: (this build is without CUDA|this machine has no usable CUDA device)"


def moves_between_ranks(record, stages, ranks):
    """Layer versions that one rank wrote and another read."""
    def rank_of(stage):
        base, more = divmod(stages, ranks)
        return next(r for r in range(ranks) if stage < (r + 1) * base + min(r + 1, more))

    written = {}
    moves = 0
    for layer, stage in query(record, "SELECT layer, stage FROM accesses ORDER BY seq, layer"):
        rank = rank_of(stage)
        moves += written.get(layer, rank) != rank
        written[layer] = rank
    return moves


class RanksTest(EndToEndTest):
    def setUp(self):
        super().setUp()
        self.spec = self.write_spec(SPEC)
        self.record = self.folder / "run.db"

    def one_process(self):
        return self.train("--stages", 2, spec=self.spec, record="one.db")

    def train_ranks(self, ranks, *options, **started):
        results = run_ranks(ranks, "train", self.spec, "-o", self.record, *options, **started)
        for rank, result in enumerate(results):
            self.expect(result, 0)
            if rank > 0:
                self.assertEqual(result.out, "", "only rank 0 speaks")
        return results

    def refuse_all(self, results, code, *parts):
        for result in results:
            self.expect(result, code, err=("verbatim: error: ", *parts))
            self.assertEqual(result.out, "", str(result))
        self.assertFalse(self.record.exists())


class Training(RanksTest):
    def test_torchrun(self):
        whole = content_digest(self.one_process())
        for processes, stages in ((1, 2), (2, 4), (3, 3), (4, 6)):
            with self.subTest(processes=processes, stages=stages):
                result = torchrun(processes, "train", self.spec, "-o", self.record, "--force",
                                  "--stages", stages)
                self.expect(result, 0, out=(f"trained {SUBNETS} subnets", f"on {stages} stages",
                                            "held-out accuracy", "next: verbatim verify"))
                self.assertEqual(content_digest(self.record), whole)
                self.verify(self.record, says="causal predecessor")
                if processes > 1:
                    self.assertIn(f"in {processes} processes", result.out)
                    self.assertGreater(moves_between_ranks(self.record, stages, processes), 0)

    def test_mpirun(self):
        result = mpirun(2, "train", self.spec, "-o", self.record)
        self.expect(result, 0, out="on 2 stages in 2 processes")
        self.assertEqual(content_digest(self.record), content_digest(self.one_process()))

    def test_slurm(self):
        self.train_ranks(3, "--in-flight", 6, "--encrypt", "--record", "full", "--recompute", "all")
        whole = self.train("--record", "full", spec=self.spec, record="one.db")
        self.expect(run("diff", self.record, whole), 0)
        self.verify(self.record, "--reexecute", "all", says="equal to the sequential reference")

    def test_checkpoints(self):
        self.train_ranks(2, "--stages", 3, "--checkpoint-every", 10)
        self.verify(self.record, says=("checkpoints", "2 checkpoints"))
        self.expect(run("export", self.record, "-o", self.folder / "model.safetensors"), 0)

    def test_device_memory(self):
        """A stage holds some of the layers only: the least that all stages of all ranks can."""
        results = run_ranks(2, "train", self.spec, "-o", self.record, "--stages", 3,
                            "--device-memory", 1)
        self.refuse_all(results, 2, "--device-memory 1: a stage must hold the layers")
        least = re.search(r"at least --device-memory (\d+)", results[0].err)[1]
        results = self.train_ranks(2, "--stages", 3, "--device-memory", least,
                                   "--checkpoint-every", 10)
        self.assertIn("were there when wanted", results[0].out)
        whole = self.one_process()
        self.assertEqual(content_digest(self.record), content_digest(whole))
        self.verify(self.record, says=("checkpoints", "2 checkpoints"))
        results = run_ranks(2, "verify", whole, "--reexecute", "all", "--device-memory", "1MiB")
        self.expect(results[0], 0, out="equal to a replay on 2 stages")

    def test_without_record(self):
        results = run_ranks(2, "train", self.spec, "--record", "off")
        self.expect(results[0], 0, out=f"trained {SUBNETS} subnets")
        self.expect(results[1], 0)

    def test_token(self):
        secret = self.folder / "run.token"
        secret.write_text("0123456789abcdef0123456789abcdef\n", encoding="ascii")
        secret.chmod(0o600)
        self.train_ranks(2, "--token-file", secret, "--interface", "lo")


class Reexecution(RanksTest):
    def setUp(self):
        super().setUp()
        self.one = self.one_process()

    def on_ranks(self, ranks, *arguments, code=0, says=()):
        results = run_ranks(ranks, *arguments)
        self.expect(results[0], code, out=says)
        for result in results[1:]:
            self.expect(result, 0)
            self.assertEqual(result.out, "")

    def test_replay(self):
        out = self.folder / "replayed.db"
        self.on_ranks(2, "replay", self.one, "--stages", 4, "-o", out, "--recompute",
                      "2-5", says="equal to a replay on 4 stages")
        self.assertEqual(content_digest(out), content_digest(self.one))

    def test_replay_of_a_cone(self):
        self.on_ranks(2, "replay", self.one, "--subnet", 15, says="re-execution")

    def test_verify(self):
        self.on_ranks(3, "verify", self.one, "--reexecute", "all",
                      says="equal to a replay on 3 stages")
        self.on_ranks(2, "verify", self.one, says="intact and causal")

    def test_difference(self):
        other = self.train("--inject", "bit-flip@5", spec=self.spec, record="other.db")
        self.on_ranks(2, "replay", other, code=1, says="First difference: subnet 5")

    def test_made_on_a_gpu(self):
        """The others look for one too, and say that there is none."""
        tamper(self.one, "UPDATE run SET device = 'cuda:0'")
        for arguments in (("replay", self.one), ("verify", self.one, "--reexecute", "all")):
            with self.subTest(command=arguments[0]):
                results = run_ranks(2, *arguments, env={"CUDA_VISIBLE_DEVICES": ""})
                self.assertEqual(results[0].code, 3, str(results[0]))  # the record is damaged
                self.assertIn(results[1].code, (2, 4), str(results[1]))
                self.assertRegex(results[1].err, NO_GPU)
                for result in run_ranks(2, *arguments, "--encrypt"):
                    self.expect(result, 2, err="--encrypt does not cover what GPUs")

    def test_damage(self):
        tamper(self.one, "UPDATE subnets SET loss_bits = loss_bits + 1 WHERE seq = 3")
        self.on_ranks(2, "replay", self.one, code=3, says="the record is damaged")


class Interruption(RanksTest):
    def setUp(self):
        super().setUp()
        self.spec = self.write_spec(LONG)

    def committed(self):
        return query(self.record, "SELECT count(*) FROM subnets")[0][0]

    def await_subnets(self, started, subnets=10):
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            self.assertLess(time.monotonic(), deadline, "nothing was committed")
            for process in started.processes:
                self.assertIsNone(process.poll(), "a rank ended too early for this test")
            if self.record.exists() and self.committed() >= subnets:
                return
            time.sleep(0.05)

    def end(self, number, rank, *options):
        """Sends a signal to one rank of a run under way."""
        with Ranks(2, "train", self.spec, "-o", self.record, *options) as started:
            self.await_subnets(started)
            started.processes[rank].send_signal(number)
            return started.results()

    def resume(self, ranks, until, *options):
        """To a subnet that is not far, which is what an uninterrupted run is compared with."""
        with Ranks(ranks, "resume", self.record, *options) as started:
            self.await_subnets(started, until)
            started.processes[-1].send_signal(signal.SIGINT)
            for result in started.results():
                self.expect(result, 0)

    def test_any_rank_stops_the_run(self):
        for rank in (0, 1):
            with self.subTest(rank=rank):
                self.record = self.folder / f"stopped-{rank}.db"
                results = self.end(signal.SIGINT, rank)
                for result in results:
                    self.expect(result, 0)
                self.expect(results[0], 0, out="stopped on request")
                self.assertEqual(query(self.record, "SELECT status FROM run"), [("interrupted",)])
                self.verify(self.record)

    def test_resume_on_other_ranks(self):
        self.end(signal.SIGINT, 1)
        finished = self.committed()
        self.resume(3, finished + 10, "--device-memory", "256KiB")
        rows = query(self.record, "SELECT stages, cut FROM resumptions")
        self.assertEqual(rows, [(3, finished)])
        self.verify(self.record, "--reexecute", "20")
        # And in one process again.
        self.expect(run("replay", self.record, "--until", finished + 5), 0)

    def test_complete_run(self):
        self.spec = self.write_spec(SPEC)
        self.train_ranks(2)
        results = run_ranks(2, "resume", self.record)
        self.expect(results[0], 0, out="is complete")
        self.expect(results[1], 0)

    def test_lost_rank(self):
        for lost, left in ((1, 0), (0, 1)):
            with self.subTest(lost=lost):
                self.record = self.folder / f"lost-{lost}.db"
                results = self.end(signal.SIGKILL, lost, "--checkpoint-every", 5)
                self.expect(results[left], 4, err=f"rank {lost} (")
        # What was recorded is sound, and the run goes on.
        self.verify(self.record)
        self.resume(2, self.committed() + 5)
        self.verify(self.record, "--reexecute", "20")

    def test_lost_rank_fails_the_record(self):
        self.end(signal.SIGKILL, 1)
        status, detail = query(self.record, "SELECT status, status_detail FROM run")[0]
        self.assertEqual(status, "failed")
        self.assertIn("rank 1 (", detail)


class BadInput(RanksTest):
    def arguments(self, *options, spec=None):
        return ["train", spec or self.spec, "-o", self.record, *options]

    def train_differently(self, *options, spec=None, env=None):
        """Rank 1 gets other options, another spec or other variables."""
        own = {"arguments": self.arguments(*options, spec=spec), "env": env or {}}
        return run_ranks(2, *self.arguments(), each={1: own})

    def test_different_specs(self):
        other = self.write_spec({**SPEC, "training.batch": 32}, name="other.json")
        self.refuse_all(self.train_differently(spec=other), 2,
                        "spec.training.batch is 16 on rank 0 and 32 on rank 1")

    def test_different_layouts(self):
        self.refuse_all(self.train_differently("--stages", 4), 2, "stages is 2 on rank 0 and 4")
        self.refuse_all(self.train_differently("--threads-per-stage", 2), 2,
                        "threads_per_stage is 1 on rank 0 and 2 on rank 1")

    def test_different_environments(self):
        results = self.train_differently(env={"ATEN_CPU_CAPABILITY": "default"})
        self.refuse_all(results, 4, "numeric environments differ", "on rank 0 and")

    def test_different_data(self):
        folder = self.write_data()
        labels = folder / "train-labels-idx1-ubyte"
        changed = bytearray(labels.read_bytes())
        changed[-1] ^= 1
        labels.write_bytes(changed)
        results = self.train_differently("--data", folder)
        self.expect(results[1], 3, err="the data set here is another one than rank 0's")
        self.expect(results[0], 4, err=("rank 1 (", "the data set here is another one"))

    def test_different_numbers_of_processes(self):
        results = run_ranks(2, *self.arguments(), each={1: {"env": {"SLURM_STEP_NUM_TASKS": "3"}}})
        # Of three processes each has a stage: the layouts differ too.
        self.refuse_all(results, 4, "one of 2 processes, rank 1")

    def test_missing_rank(self):
        results = run_ranks(3, *self.arguments("--join-timeout", 1), each={1: {"absent": True}})
        self.refuse_all(results, 4, "rank 1 did not join at 127.0.0.1:")

    def test_port_in_use(self):
        with socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            held.listen()
            port = held.getsockname()[1]
            results = run_ranks(2, *self.arguments("--join-timeout", 2), port=port)
        self.expect(results[0], 4, err=(f"127.0.0.1:{port}", "in use", "another MASTER_PORT"))
        self.assertEqual(results[1].code, 4, str(results[1]))

    def test_host_that_is_none(self):
        results = run_ranks(2, *self.arguments(), env={"MASTER_ADDR": "no-such-host.invalid"})
        self.refuse_all(results, 4, "no-such-host.invalid cannot be resolved")

    def test_nobody_listens(self):
        results = run_ranks(2, *self.arguments("--join-timeout", 1), each={0: {"absent": True}})
        self.refuse_all(results, 4, "nobody listens at 127.0.0.1:", "--join-timeout")

    def test_fewer_stages_than_ranks(self):
        self.refuse_all(run_ranks(3, *self.arguments("--stages", 2)), 2, "--stages 2: 3 ranks")

    def test_no_token(self):
        """Several hosts, or an address that others reach."""
        results = run_ranks(2, *self.arguments("--interface", "lo"),
                            env={"SLURM_STEP_NUM_NODES": "2", "MASTER_ADDR": socket.gethostname()})
        for result in results:
            self.expect(result, 2, err=("no token", "VERBATIM_TOKEN"))

    def test_tokens(self):
        own = {1: {"env": {"VERBATIM_TOKEN": "f" * 32}}}
        results = run_ranks(2, *self.arguments(), each=own, env={"VERBATIM_TOKEN": "0" * 32})
        self.expect(results[0], 4, err="rank 1 gave up")
        self.expect(results[1], 4, err="not sealed with the token of rank 1")
        self.refuse_all(run_ranks(2, *self.arguments(), env={"VERBATIM_TOKEN": "short"}), 2, "token")

    def test_token_of_rank_zero_alone(self):
        """The others hear of it, though nothing can be sealed for them."""
        secret = self.folder / "run.token"
        secret.write_text("0" * 32, encoding="ascii")
        secret.chmod(0o644)
        results = run_ranks(2, *self.arguments(), env={"VERBATIM_TOKEN": "0" * 32},
                            each={0: {"arguments": self.arguments("--token-file", secret),
                                      "env": {"VERBATIM_TOKEN": ""}}})
        self.expect(results[0], 2, err="others than its owner may read")
        self.expect(results[1], 4, err="rank 0 gave up before it had joined")

    def test_interface_that_is_none(self):
        """Rank 0 would serve the rendezvous there."""
        results = run_ranks(2, *self.arguments("--interface", "none0"),
                            env={"SLURM_STEP_NUM_NODES": "2", "VERBATIM_TOKEN": "0" * 32,
                                 "MASTER_ADDR": socket.gethostname()})
        self.refuse_all(results, 2, "--interface none0 is no interface or address of")

    def test_what_one_process_does_alone(self):
        for options, says in ((("--inject", "bit-flip"), "--inject"),
                              (("--policy", "gpipe"), "--policy gpipe"),
                              (("--device", "cuda:1"), "--device cuda:1")):
            with self.subTest(options=options):
                self.refuse_all(run_ranks(2, *self.arguments(*options)), 2, says,
                                "in one process, not in several")

    def test_gpus_that_are_not_there(self):
        for result in run_ranks(2, *self.arguments("--device", "cuda"),
                                env={"CUDA_VISIBLE_DEVICES": ""}):
            self.assertIn(result.code, (2, 4), str(result))  # by whether the build has CUDA
            self.assertRegex(result.err, NO_GPU)
        self.refuse_all(run_ranks(2, *self.arguments("--device", "cuda", "--encrypt")), 2,
                        "--encrypt does not cover what GPUs")

    def test_half_of_a_launcher(self):
        result = run(*self.arguments(), env={"WORLD_SIZE": "2"})
        self.expect(result, 2, err="WORLD_SIZE is set, but RANK is not")

    def test_failure_of_rank_zero_alone(self):
        """The others hear of it: they do not wait."""
        self.record.write_text("something", encoding="ascii")
        for result in run_ranks(2, *self.arguments()):
            self.expect(result, 2, err="run.db exists already")

    def test_missing_spec(self):
        missing = self.arguments(spec=self.folder / "none.json")
        results = run_ranks(2, *self.arguments(), each={1: {"arguments": missing}})
        self.refuse_all(results, 3, "none.json")


if __name__ == "__main__":
    unittest.main()
