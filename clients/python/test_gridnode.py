"""Tests of the client against a real daemon: GRIDNODE_HOME=… python3 -m unittest, in this folder."""

import threading
import unittest

import gridnode


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
