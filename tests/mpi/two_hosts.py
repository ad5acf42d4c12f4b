# SPDX-License-Identifier: Apache-2.0
"""Two hosts on one computer, for tests: network namespaces with names of their own and a link between them.

Everything happens in a user namespace, which needs no privileges where the kernel allows it, and in a
process namespace, so that nothing outlives the test.
"""

import json
import os
import subprocess
import sys
import tempfile

ADDRESSES = ("10.77.0.1", "10.77.0.2")
ENTERED = "ESPALIER_TWO_HOSTS"
SETTING = ["unshare", "--user", "--map-root-user", "--net", "--uts", "--mount", "--pid", "--fork",
           "--kill-child", "--mount-proc"]


def enter():
    """Starts this script again where hosts can be made; ends it as skipped (77) where none can be."""
    if os.environ.get(ENTERED) == "1":
        return
    probe = "unshare --net --uts true && ip link add here type veth peer name there"
    try:
        run = subprocess.run(SETTING + ["sh", "-c", probe], capture_output=True, text=True, timeout=60,
                             check=False)
        problem = run.stderr if run.returncode != 0 else None
    except OSError as error:
        problem = str(error)
    if problem is not None:
        print(f"skipped: two hosts can't be made here: {problem}")
        sys.exit(77)
    os.environ[ENTERED] = "1"
    os.execvp(SETTING[0], SETTING + [sys.executable, os.path.realpath(sys.argv[0]), *sys.argv[1:]])


class TwoHosts:
    """This process is on the first one."""

    def __init__(self):
        self.run("hostname", "here")
        self.there = subprocess.Popen(
            ["unshare", "--net", "--uts", "sh", "-c", "hostname there; echo; exec sleep 3600"],
            stdout=subprocess.PIPE)
        self.there.stdout.readline()
        self.run("ip", "link", "add", "here", "type", "veth", "peer", "name", "there", "netns",
                 str(self.there.pid))
        for host, name in enumerate(("here", "there")):
            self.run(*self.on(host), "ip", "addr", "add", f"{ADDRESSES[host]}/24", "dev", name)
            self.run(*self.on(host), "ip", "link", "set", name, "up")
            self.run(*self.on(host), "ip", "link", "set", "lo", "up")
        self.folder = tempfile.TemporaryDirectory()
        self.agent = os.path.join(self.folder.name, "agent")
        with open(self.agent, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n# What launchers call in place of ssh.\n"
                       'while case "$1" in -*) true ;; *) false ;; esac; do shift; done\n'
                       'case "$1" in\n'
                       f'  {ADDRESSES[1]}) shift; exec {" ".join(self.on(1))} sh -c "$*" ;;\n'
                       '  *) shift; exec sh -c "$*" ;;\n'
                       "esac\n")
        os.chmod(self.agent, 0o755)

    @staticmethod
    def run(*words):
        subprocess.run(words, check=True, timeout=60)

    def on(self, host):
        """Words before a command that is to run on that host."""
        if host == 0:
            return []
        return ["nsenter", "--target", str(self.there.pid), "--net", "--uts"]

    def set_link(self, state):
        """Turns the link "up" or "down"."""
        self.run("ip", "link", "set", "here", state)

    def bytes_sent(self):
        """From the first host to the other so far, headers of packets included."""
        shown = subprocess.run(["ip", "-s", "-j", "link", "show", "dev", "here"], check=True, timeout=60,
                               capture_output=True, text=True)
        return json.loads(shown.stdout)[0]["stats64"]["tx"]["bytes"]

    def shape(self, megabits):
        """Limits the link in both directions; false where the kernel can't."""
        for host, name in enumerate(("here", "there")):
            words = self.on(host) + ["tc", "qdisc", "replace", "dev", name, "root", "tbf", "rate",
                                     f"{megabits}mbit", "burst", "128kb", "latency", "200ms"]
            if subprocess.run(words, check=False, timeout=60).returncode != 0:
                return False
        return True

    def unshape(self):
        """Takes the limit away."""
        for host, name in enumerate(("here", "there")):
            self.run(*self.on(host), "tc", "qdisc", "del", "dev", name, "root")

    def launcher_words(self, mpiexec, each):
        """So many processes on each host."""
        version = subprocess.run([mpiexec, "--version"], capture_output=True, text=True, check=False)
        if "HYDRA" in version.stdout:
            return [mpiexec, "-launcher", "ssh", "-launcher-exec", self.agent, "-localhost",
                    ADDRESSES[0], "-hosts", ",".join(ADDRESSES), "-ppn", str(each), "-n", str(2 * each)]
        hosts = ",".join(f"{address}:{each}" for address in ADDRESSES)
        return [mpiexec, "--oversubscribe", "--allow-run-as-root", "--mca", "plm_rsh_agent", self.agent,
                "-H", hosts, "-n", str(2 * each)]

    def close(self):
        self.there.kill()
        self.there.wait()
        self.folder.cleanup()
