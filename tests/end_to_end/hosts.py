"""Hosts of one network, simulated on this machine: each is a network namespace, and a thread of the
test hands their packets on: late, some never, and none at all to and from a host that is cut off.

That takes user namespaces and /dev/net/tun, but neither root nor modules of the kernel. `simulate`
moves the test into a namespace of its own, or says why it cannot.
"""

import contextlib
import fcntl
import heapq
import itertools
import ipaddress
import os
import pathlib
import random
import selectors
import struct
import subprocess
import sys
import threading
import time

IS_INSIDE = "VERBATIM_SIMULATES_HOSTS"
UNSHARE = ["unshare", "--map-root-user", "--net"]
TUNSETIFF = 0x400454CA
IFF_TUN_WITHOUT_HEADERS = 0x1001
PACKET_MAX = 1 << 16
# In /proc/net/tcp.
LISTENS = "0A"


def simulate():
    """Call first in a test's main. The test begins anew within the namespace, where there can be
    one; afterwards `is_simulated` tells."""
    if is_simulated():
        ip("link", "set", "lo", "up")
        return
    try:
        tried = subprocess.run([*UNSHARE, sys.executable, "-B", __file__], text=True,
                               capture_output=True, check=False)
        failure = tried.stderr.strip().splitlines()[-1:] if tried.returncode else None
    except OSError as error:
        failure = [str(error)]
    if failure is None:
        os.environ[IS_INSIDE] = "1"
        os.execvp(UNSHARE[0], [*UNSHARE, sys.executable, "-B", *sys.argv])
    print(f"no hosts are simulated: {' '.join(failure) or 'for no reason told'}", flush=True)


def is_simulated():
    return IS_INSIDE in os.environ


def ip(*arguments, inside=()):
    subprocess.run([*inside, "ip", *map(str, arguments)], check=True)


class Host:
    """Reaches the network as `eth0`. `eth1` leads nowhere: a network of somebody else's."""

    interface = "eth0"

    def __init__(self, number):
        self.address = f"10.77.0.{number}"
        self.other_address = f"10.78.{number}.1"
        self._keeper = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo; exec cat"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # From here on there is a namespace.
        self._keeper.stdout.readline()
        # Words that start a command on this host, in the process that they are started in.
        self.inside = ["nsenter", f"--net=/proc/{self._keeper.pid}/ns/net", "--"]
        ip("link", "set", "lo", "up", inside=self.inside)
        self.tunnel = self._add("eth0", self.address)
        self._other = self._add("eth1", self.other_address)

    def _add(self, name, address):
        tunnel = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(tunnel, TUNSETIFF, struct.pack("16sH22x", name.encode(),
                                                   IFF_TUN_WITHOUT_HEADERS))
        ip("link", "set", name, "netns", self._keeper.pid)
        ip("address", "add", f"{address}/24", "dev", name, inside=self.inside)
        ip("link", "set", name, "up", inside=self.inside)
        return tunnel

    def close(self):
        self._keeper.stdin.close()
        self._keeper.wait()
        self._keeper.stdout.close()
        os.close(self.tunnel)
        os.close(self._other)


def listening(process):
    """The addresses and ports at which a process listens, on whatever host it is."""
    folder = pathlib.Path("/proc", str(process))
    own = set()
    for descriptor in (folder / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            own.add(os.readlink(descriptor))
    lines = [line.split() for name in ("tcp", "tcp6")
             for line in (folder / "net" / name).read_text(encoding="ascii").splitlines()]
    return {address_of(words[1]) for words in lines
            if words[3] == LISTENS and f"socket:[{words[9]}]" in own}


def address_of(text):
    """From /proc/net/tcp: 0100007F:1F90, in words of the machine's byte order."""
    digits, port = text.split(":")
    words = [int(digits[i:i + 8], 16) for i in range(0, len(digits), 8)]
    return str(ipaddress.ip_address(struct.pack(f"={len(words)}I", *words))), int(port, 16)


class Network:
    """`delay_ms`: of a packet, between two numbers, those of one receiver in order. `loss`: the
    share of packets that never arrive."""

    def __init__(self, hosts, delay_ms=(0, 0), loss=0.0, seed=0):
        self.hosts = [Host(number) for number in range(1, hosts + 1)]
        self.delivered = 0
        self.lost = 0
        self._receivers = {ipaddress.ip_address(host.address).packed: host for host in self.hosts}
        self._delay_s = [ms / 1000 for ms in delay_ms]
        self._loss = loss
        self._random = random.Random(seed)
        self._cut = set()
        self._late = []  # a heap of (when, number, receiver, packet)
        self._numbers = itertools.count()
        self._last = {}  # when the last one is due, by receiver
        self._is_open = True
        self._thread = threading.Thread(target=self._hand_on, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._is_open = False
        self._thread.join()
        for host in self.hosts:
            host.close()

    def cut(self, host):
        self._cut.add(host.address)

    def mend(self, host):
        self._cut.discard(host.address)

    def _hand_on(self):
        selector = selectors.DefaultSelector()
        for host in self.hosts:
            selector.register(host.tunnel, selectors.EVENT_READ, host)
        while self._is_open:
            for ready, _ in selector.select(self._wait_s()):
                self._take(ready.data)
            self._deliver()
        selector.close()

    def _wait_s(self):
        """Not for long: nobody else tells the thread to end."""
        until = self._late[0][0] if self._late else float("inf")
        return max(0, min(until - time.monotonic(), 0.1))

    def _take(self, sender):
        with contextlib.suppress(BlockingIOError):
            for _ in range(64):
                packet = os.read(sender.tunnel, PACKET_MAX)
                receiver = self._receivers.get(packet[16:20]) if packet[0] >> 4 == 4 else None
                if receiver is None:
                    continue
                if self._random.random() < self._loss:
                    self.lost += 1
                    continue
                due = max(time.monotonic() + self._random.uniform(*self._delay_s),
                          self._last.get(receiver.address, 0))
                self._last[receiver.address] = due
                heapq.heappush(self._late, (due, next(self._numbers), sender, receiver, packet))

    def _deliver(self):
        while self._late and self._late[0][0] <= time.monotonic():
            *_, sender, receiver, packet = heapq.heappop(self._late)
            self.delivered += 1
            if {sender.address, receiver.address} & self._cut:
                continue
            # A full queue loses packets, as networks do.
            with contextlib.suppress(BlockingIOError):
                os.write(receiver.tunnel, packet)


if __name__ == "__main__":
    # Whether all that a simulation takes is there: an exception says what is not.
    Network(1).close()
