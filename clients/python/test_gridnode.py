"""Tests of the client against a real daemon: GRIDNODE_HOME=… python3 -m unittest, in this folder."""

import os
import socket
import tempfile
import threading
import unittest

import gridnode


class Relay:
    """A socket that leads to the daemon's, until it is cut."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "relay.sock")
        self.ends, self.made = [], 0
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(self.path)
        self.door.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                near, _ = self.door.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(os.path.join(os.environ["GRIDNODE_HOME"], "api.sock"))
            self.ends += [near, far]
            self.made += 1
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(a, b), daemon=True).start()

    @staticmethod
    def _copy(a, b):
        try:
            while data := a.recv(1 << 16):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def cut(self):
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self):
        self.door.close()
        self.cut()
        for end in self.ends:
            end.close()
        self.folder.cleanup()


class Daemon(unittest.TestCase):
    def setUp(self):
        self.site = gridnode.Client(timeout=60)

    def test_a_job_from_begin_to_end(self):
        job = self.site.submit(args=["sh", "-c", "echo here; echo there >&2; exit 3"], name="probe", time=60)[0]
        over = self.site.wait(job["id"], timeout=60)[0]
        self.assertEqual((over["state"], over["exitCode"], over["name"]), ("failed", 3, "probe"))
        self.assertEqual(self.site.logs(job["id"]).read(), b"here\n")
        self.assertEqual(self.site.logs(job["id"], stream="stderr", tail=1).read(), b"there\n")
        self.assertEqual(self.site.job(job["id"])["state"], "failed")
        self.assertIn(job["id"], [j["id"] for j in self.site.jobs(name="probe", all=True)])
        self.assertIn(job["id"], [line.get("id") for line in self.site.history()])

    def test_several_and_waiting_in_one_request(self):
        jobs = self.site.submit({"args": ["true"]}, {"args": ["true"], "array": [1, 2]}, wait="done")
        self.assertEqual([j["state"] for j in jobs], ["done"] * 3)

    def test_hold_release_cancel(self):
        job = self.site.submit(args=["sleep", "100"], hold=True, wait="stored")[0]["id"]
        with self.assertRaises(TimeoutError):
            self.site.wait(job, timeout=0.2)
        self.assertEqual(self.site.release(job)[0]["id"], job)
        self.site.cancel(job, cause="a test")
        over = self.site.wait(job, timeout=60)[0]
        self.assertEqual(over["state"], "cancelled")
        self.assertIn("a test", over["reason"])

    def test_follow_and_watch(self):
        states, begun = [], threading.Event()

        def watch(job):
            for j in self.site.watch(id=job):
                states.append(j["state"])
                begun.set()
                if j["state"] in ("done", "failed", "cancelled", "refused"):
                    return

        job = self.site.submit(args=["sh", "-c", "echo one; sleep 1; echo two"], hold=True, wait="stored")[0]["id"]
        thread = threading.Thread(target=watch, args=(job,))
        thread.start()
        begun.wait(60)
        self.site.release(job)
        self.assertEqual([line.strip() for line in self.site.logs(job, follow=True)], [b"one", b"two"])
        thread.join(60)
        self.assertEqual((states[0], states[-1]), ("waiting", "done"))

    def test_a_stream_that_breaks_goes_on(self):
        relay = Relay()
        self.addCleanup(relay.close)
        jobs = [j["id"] for j in self.site.submit(*[{"args": ["true"], "hold": True}] * 3, wait="stored")]
        told, gaps = [], []
        stream = gridnode.Client(socket=relay.path, timeout=60).watch(gap=gaps.append, id=jobs)
        for _ in jobs:
            told.append(next(stream)["id"])
        self.assertEqual(sorted(told), sorted(jobs))
        self.site.cancel(jobs[0])  # behind it the place is known
        self.assertEqual(next(stream)["id"], jobs[0])
        relay.cut()
        self.site.cancel(jobs[1])
        again = []
        while jobs[1] not in again:
            again.append(next(stream)["id"])
        self.assertNotIn(jobs[2], again, "what has not changed is told again")
        stream.close()
        self.assertEqual((relay.made, gaps), (2, []))
        with self.assertRaises(gridnode.NoDaemon):  # who has never been there is not waited for
            next(gridnode.Client("/nonexistent").watch())

    def test_output_that_breaks_goes_on(self):
        relay, folder = Relay(), tempfile.TemporaryDirectory()
        self.addCleanup(relay.close)
        self.addCleanup(folder.cleanup)
        gate = os.path.join(folder.name, "gate")
        os.mkfifo(gate)
        job = self.site.submit(args=["sh", "-c", "echo one; echo two; read x <" + gate + "; echo three"])[0]["id"]
        site = gridnode.Client(socket=relay.path, timeout=60)
        whole, last = site.logs(job, follow=True), site.logs(job, follow=True, tail=1)
        self.assertEqual([whole.readline(), whole.readline()], [b"one\n", b"two\n"])
        self.assertIn(last.readline(), (b"one\n", b"two\n"))  # as far as it had come
        made = relay.made
        relay.cut()
        with open(gate, "w") as door:
            door.write("\n")
        self.assertEqual(whole.read(), b"three\n")
        self.assertEqual(last.readlines()[-1], b"three\n")
        self.assertGreater(relay.made, made)
        self.assertEqual(site.logs(job, follow=True).read(), b"one\ntwo\nthree\n")
        with self.assertRaises(gridnode.NoDaemon):  # who has never been there is not waited for
            gridnode.Client("/nonexistent").logs(job, follow=True)
        with self.assertRaises(gridnode.Error) as raised:
            site.logs("nonesuch", follow=True)
        self.assertEqual(raised.exception.code, "notFound")

    def test_events_are_read(self):
        text = b": hello\n\nevent: gap\ndata: {\"reason\": \"x\"}\n\nid: 7\nevent: now\ndata: {}\n\nevent: job\ndata: {"
        with tempfile.TemporaryFile() as file:
            file.write(text)
            file.seek(0)
            events = gridnode._events(file)
            self.assertEqual([next(events), next(events)], [("gap", "", {"reason": "x"}), ("now", "7", {})])
            with self.assertRaises(gridnode.Broken):
                next(events)

    def test_what_would_be_and_why(self):
        self.assertTrue(self.site.preview(args=["true"])["feasible"])
        job = self.site.submit(args=["true"], wait="done")[0]["id"]
        self.assertEqual(self.site.why(job)["job"]["id"], job)
        self.assertIn(self.site.node()["id"], [s["id"] for s in self.site.sites()])
        self.assertEqual(self.site.leases(), [])

    def test_errors(self):
        for call, code, status in (
            (lambda: self.site.job("nonesuch"), "notFound", 404),
            (lambda: self.site.submit(args=[]), "usage", 400),
            (lambda: self.site.submit(args=["true"], nonsense=1), "usage", 400),
            (lambda: self.site.jobs(nonsense="x"), "usage", 400),
        ):
            with self.assertRaises(gridnode.Error) as raised:
                call()
            self.assertEqual((raised.exception.code, raised.exception.status), (code, status), raised.exception)
        with self.assertRaises(gridnode.NoDaemon):
            gridnode.Client("/nonexistent").node()
        with self.assertRaises(ValueError):
            gridnode.Client(url="http://example.org", token="secret")


if __name__ == "__main__":
    unittest.main()
