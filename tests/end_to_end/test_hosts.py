#!/usr/bin/env python3
"""Ranks on several hosts leave the bits of one process, over a network that is slow and loses
packets; they listen where they are told and nowhere else, and let nobody in without the token.

The hosts are simulated (hosts.py). Where this machine does not allow that, all ranks are on its
loopback interface, which the test says: then ports, strangers and tokens are tested all the same.
"""

import contextlib
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import time
import unittest

import hosts
from harness import TIMEOUT_S, LongRunTest, content_digest, query
from ranks import Ranks, free_port, run_ranks

SEED = int(os.environ.get("VERBATIM_TEST_SEED") or random.SystemRandom().randrange(10**6))
SUBNETS = 24
SPEC = {
    "training.subnets": SUBNETS,
    "supernet.stem": {"op": "conv", "channels": 8, "delay": 2},
    "supernet.head": {"op": "classifier", "delay": 3},
}
LONG = {**SPEC, "training.subnets": 4000}
DELAY_MS = (5, 20)
LOSS = 0.01
HOSTS = 3

# Connects as ZeroMQ does, with a mechanism, a name and a password, and waits until it is refused:
# the connection is closed then, after half a minute where it was only told so.
STRANGER = """
import socket, sys
address, port, mechanism, password = sys.argv[1:]
link = socket.create_connection((address, int(port)), timeout=60)
hello = b"\\x05HELLO" + b"\\x011" + bytes([len(password)]) + password.encode()
try:
    link.sendall(bytes.fromhex("ff00000000000000007f0300") + mechanism.encode().ljust(20, b"\\0")
                 + bytes(32))
    link.sendall(bytes([4, len(hello)]) + hello)
    while link.recv(4096):
        pass
except ConnectionError:
    pass
"""


class Loopback:
    """In place of a simulated host."""

    address = "127.0.0.1"
    interface = "lo"
    inside = ()


class HostsTest(LongRunTest):
    def setUp(self):
        super().setUp()
        self.record = self.folder / "run.db"
        self.token = self.folder / "run.token"
        self.token.write_text(secrets.token_hex(32), encoding="ascii")
        self.token.chmod(0o600)
        self.port = free_port()
        self.network = None
        self.hosts = [Loopback] * HOSTS
        if hosts.is_simulated():
            self.network = hosts.Network(HOSTS, DELAY_MS, LOSS, SEED)
            self.addCleanup(self.network.close)
            self.hosts = self.network.hosts

    def arguments(self, *options, changes=SPEC):
        return ["train", self.write_spec(changes), "-o", self.record, *options]

    def places(self):
        """A rank on each host."""
        each = {rank: {"inside": host.inside} for rank, host in enumerate(self.hosts)}
        env = {"MASTER_ADDR": self.hosts[0].address, "SLURM_STEP_NUM_NODES": str(HOSTS)}
        return {"each": each, "env": env, "port": self.port}

    def known(self, *options):
        return ["--token-file", self.token, "--interface", self.hosts[0].interface, *options]


class Training(HostsTest):
    def train_on_hosts(self, *options):
        results = run_ranks(HOSTS, *self.arguments(*options), **self.places())
        for result in results:
            self.expect(result, 0)
            self.assertNotIn("refused a connection", result.err)
            self.assertNotIn("[c10d]", result.err, "LibTorch's own warnings")
        one = self.train("--stages", 2, spec=self.write_spec(SPEC), record="one.db")
        self.assertEqual(content_digest(self.record), content_digest(one))
        self.verify(self.record, says="causal predecessor")
        if self.network:
            print(f"{self.network.delivered} packets arrived, {self.network.lost} were lost",
                  flush=True)
            self.assertGreater(self.network.lost, 0)

    def test_in_the_clear(self):
        self.train_on_hosts(*self.known("--stages", 4))

    def test_encrypted(self):
        self.train_on_hosts(*self.known("--encrypt"))

    def test_interface_that_leads_there(self):
        self.train_on_hosts("--token-file", self.token)


class Outside(HostsTest):
    @contextlib.contextmanager
    def under_way(self, *options):
        """A run that is stopped in the end."""
        arguments = self.arguments(*self.known(*options), changes=LONG)
        with Ranks(HOSTS, *arguments, **self.places()) as started:
            self.await_rows(started.processes[0], self.record, 5)
            self.results = None
            yield started.processes
            started.processes[-1].send_signal(signal.SIGINT)
            self.results = started.results()
        for result in self.results:
            self.expect(result, 0)

    def ports(self, processes):
        """Of the listening sockets by rank, all of which are where they should be."""
        ports = []
        for process, host in zip(processes, self.hosts):
            at = hosts.listening(process.pid)
            self.assertEqual({address for address, _ in at}, {host.address})
            ports.append({port for _, port in at})
        return ports

    def test_rendezvous(self):
        """It listens at its address alone, for as long as ranks join."""
        places = self.places()
        places["each"][1]["absent"] = True
        with Ranks(HOSTS, *self.arguments(*self.known()), **places) as started:
            first = started.processes[0]
            deadline = time.monotonic() + TIMEOUT_S
            rendezvous = (self.hosts[0].address, self.port)
            while rendezvous not in (at := hosts.listening(first.pid)):
                self.assertLess(time.monotonic(), deadline)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    first.wait(timeout=0.02)
        self.assertEqual({address for address, _ in at}, {self.hosts[0].address})

    def test_listening(self):
        with self.under_way() as processes:
            for ports in self.ports(processes):
                self.assertEqual(len(ports), 1, "one port for the other ranks")

    def refuse_stranger(self, mechanism, why, *options):
        with self.under_way(*options) as processes:
            [port] = self.ports(processes)[0]
            stranger = self.hosts[-1]
            subprocess.run([*stranger.inside, sys.executable, "-c", STRANGER,
                            self.hosts[0].address, str(port), mechanism, "a password"],
                           check=True, timeout=TIMEOUT_S)
        self.assertRegex(self.results[0].err,
                         rf"verbatim: refused a connection from {stranger.address}\S*: .*{why}")
        self.assertEqual(query(self.record, "SELECT status FROM run"), [("interrupted",)])
        self.verify(self.record)

    def test_stranger(self):
        self.refuse_stranger("PLAIN", "its password as rank 1 is wrong")

    def test_stranger_in_the_clear(self):
        self.refuse_stranger("PLAIN", "", "--encrypt")

    def test_no_token(self):
        places = self.places()
        if not self.network:
            # The name of a host says nothing of where the others are.
            places["env"]["MASTER_ADDR"] = socket.gethostname()
        arguments = self.arguments("--interface", self.hosts[0].interface)
        for result in run_ranks(HOSTS, *arguments, **places):
            self.expect(result, 2, err=("no token", "VERBATIM_TOKEN"))
        self.assertFalse(self.record.exists())

    def test_another_token(self):
        other = self.folder / "other.token"
        other.write_text(secrets.token_hex(32), encoding="ascii")
        other.chmod(0o600)
        places = self.places()
        places["each"][1]["arguments"] = self.arguments("--token-file", other)
        results = run_ranks(HOSTS, *self.arguments(*self.known()), **places)
        for result in results:
            self.expect(result, 4)
            self.assertRegex(result.err, "not sealed with the token|rank 1 gave up")
        self.assertFalse(self.record.exists())


if __name__ == "__main__":
    hosts.simulate()
    print("ranks on simulated hosts" if hosts.is_simulated() else
          "all ranks on the loopback interface of one host", flush=True)
    print(f"again with: VERBATIM_TEST_SEED={SEED}", flush=True)
    unittest.main()
