"""Client of a gridnode site: one file, the standard library only, Python 3.9 or later.

    import gridnode
    site = gridnode.Client()                      # the daemon of ~/.gridnode
    job = site.submit(args=["hostname"], time=60)[0]
    print(site.wait(job["id"])[0]["state"])
    print(site.logs(job["id"]).read().decode())

Keys, values and errors are those of docs/api.md and of GET /v1/openapi.json: spans are
seconds, instants RFC 3339, money credits. Files travel with `gridnode submit --in`.
"""

import codecs
import http.client
import io
import json
import os
import re
import socket
import ssl
import time
import urllib.parse

__all__ = ["Client", "Error", "NoDaemon", "Broken"]


class Error(Exception):
    """A refusal of the daemon: code is a stable word, status that of HTTP."""

    def __init__(self, code, message, status=0):
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


class NoDaemon(Error):
    """Nothing listens there."""

    def __init__(self, message):
        super().__init__("noDaemon", message)


class Broken(Error):
    """The connection broke before the answer was complete: what was asked for may have
    happened. A submission whose jobs have IDs may be repeated."""

    def __init__(self, message):
        super().__init__("broken", message)


class _Socket(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path, timeout):
        super().__init__("gridnode", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            # A path of more than a hundred bytes does not fit into an address: it is
            # reached through its open folder.
            folder = os.open(os.path.dirname(self._path) or ".", os.O_RDONLY)
            try:
                self.sock.connect("/proc/self/fd/%d/%s" % (folder, os.path.basename(self._path)))
            finally:
                os.close(folder)
        except OSError as e:
            self.sock.close()
            raise NoDaemon("no daemon listens at %s (%s): gridnode start" % (self._path, e.strerror or e)) from e


def _items(answer, key):
    """Yields the elements of the list that stands under key in an object, as they come. What
    stands before the list is short."""
    decoder, text, inside, after = json.JSONDecoder(), "", False, codecs.getincrementaldecoder("utf-8")("replace")
    opening = re.compile(r'"%s"\s*:\s*\[' % re.escape(key))
    with answer:
        while True:
            part = _part(answer)
            text += after.decode(part, final=not part)
            if not inside:
                found = opening.search(text)
                if found:
                    text, inside = text[found.end():], True
            at = 0
            while inside:
                at = _SPACE.match(text, at).end()
                if text[at:at + 1] == "]":
                    return
                try:
                    value, at = decoder.raw_decode(text, at)
                except ValueError:  # the rest of it has not come
                    break
                yield value
            text = text[at:]
            if not part:
                raise Broken("the answer is not complete")


def _events(answer):
    """Yields the events of a stream (server-sent events) as kind, ID and value, as they come."""
    event = {}
    while True:
        try:
            line = answer.readline()
        except (OSError, http.client.HTTPException) as e:
            raise Broken("the stream broke off: %s" % e) from e
        if not line.endswith(b"\n"):
            raise Broken("the stream broke off")
        line = line.rstrip(b"\r\n").decode("utf-8", "replace")
        if line:
            name, _, value = line.partition(":")
            event[name] = value[1:] if value.startswith(" ") else value
        else:
            if "data" in event:
                yield event.get("event", ""), event.get("id", ""), json.loads(event["data"])
            event = {}


def _part(answer):
    """Reads what has come of an answer, nothing at its end."""
    try:
        return answer.read1(1 << 16)
    except (OSError, http.client.HTTPException) as e:
        raise Broken("the answer is not complete: %s" % e) from e


class _Retry:
    """Decides whether a connection that broke is made again: for patience seconds, and only if
    the daemon was there before."""

    def __init__(self, patience):
        self._patience, self._been = patience, False
        self._pause, self._away = 0.1, time.monotonic()

    def there(self):
        """Notes that the daemon is there."""
        self._been, self._pause, self._away = True, 0.1, None

    def after(self, e):
        """Raises the error, or returns when it is time to try again."""
        if self._away is None:
            self._away = time.monotonic()
        again = isinstance(e, Broken) or self._been and (isinstance(e, NoDaemon) or e.code in ("unavailable", "busy"))
        if not again or time.monotonic() + self._pause - self._away > self._patience:
            raise e
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, 2)


class _Output(io.RawIOBase):
    """What a job writes until it is over, over one connection or several."""

    def __init__(self, site, path, stream, tail, patience):
        self._site, self._path, self._wanted = site, path, {"stream": stream, "follow": "true", "tail": tail}
        self._retry, self._answer = _Retry(patience), None
        self._place = None  # which execution it is of, and how many bytes of that have come
        while self._answer is None:  # what is wrong from the beginning is said at once
            self._try(self._ask)

    def _try(self, step):
        begun = time.monotonic()
        try:
            return step()
        except Error as e:
            self._drop()
            if isinstance(e.__cause__, socket.timeout):  # the caller's
                raise
            if isinstance(e, Broken) and time.monotonic() - begun > 2:  # silent for a while, but there
                self._retry.there()
            self._retry.after(e)

    def _ask(self):
        if self._place:
            self._wanted.update({"tail": None, "from": "%s-%d" % self._place})
        self._answer = self._site.open("GET", self._path, **self._wanted)
        execution, _, offset = self._answer.headers.get("Gridnode-Output", "").partition("-")
        if execution:
            self._place = execution, int(offset)

    def _read(self, buffer):
        if self._answer is None:
            self._ask()
        try:
            n = self._answer.readinto1(buffer)
        except (OSError, http.client.HTTPException) as e:
            raise Broken("the output broke off: %s" % e) from e
        if n == 0 and not self._over():  # the daemon ended it, which stops
            raise Broken("the output broke off")
        self._retry.there()
        if self._place:
            self._place = self._place[0], self._place[1] + n
        return n

    def _over(self):
        job = self._site.request("GET", self._path[:-len("/logs")])
        return job["state"] in ("done", "failed", "cancelled", "refused")

    def readable(self):
        return True

    def readinto(self, buffer):
        while True:
            n = self._try(lambda: self._read(buffer))
            if n is not None:
                return n

    def _drop(self):
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def close(self):
        self._drop()
        super().close()


_SPACE = re.compile(r"[\s,]*")


class Client:
    """Talks to one daemon: that of a home, one at another socket, or one elsewhere
    by its URL and a token (gridnode token create). A timeout in seconds bounds how long
    a single read may take; None: any time."""

    def __init__(self, home=None, *, socket=None, url=None, token=None, cafile=None, timeout=None):
        if url is None and socket is None:
            home = home or os.environ.get("GRIDNODE_HOME") or os.path.expanduser("~/.gridnode")
            socket = os.path.join(home, "api.sock")
        self._socket, self._url, self._token, self._timeout = socket, url, token, timeout
        self._tls = ssl.create_default_context(cafile=cafile) if url else None
        if url and urllib.parse.urlsplit(url).scheme != "https":
            raise ValueError("url: want https://HOST:PORT")

    def _connection(self):
        if self._socket is not None:
            return _Socket(self._socket, self._timeout)
        where = urllib.parse.urlsplit(self._url)
        return http.client.HTTPSConnection(where.hostname, where.port, timeout=self._timeout, context=self._tls)

    def open(self, method, path, body=None, headers=None, **parameters):
        """Sends a request and returns the answer as a file of bytes. Parameters that are
        None are left out, lists are repeated."""
        wanted = {k: v for k, v in parameters.items() if v is not None}
        if wanted:
            path += "?" + urllib.parse.urlencode(wanted, doseq=True)
        headers = {"Content-Type": "application/json", **(headers or {})}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        data = None
        if method != "GET":
            data = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        connection = self._connection()
        try:
            connection.request(method, path, body=data, headers=headers)
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as e:
            connection.close()
            if isinstance(e, ConnectionRefusedError):
                raise NoDaemon("no daemon listens at %s: %s" % (self._url, e)) from e
            if isinstance(e, ssl.SSLCertVerificationError):
                raise Error("certificate", "the certificate of %s is not good: %s; name its authority by cafile" % (self._url, e)) from e
            raise Broken("the daemon went away before it answered: %s" % e) from e
        if answer.status // 100 == 2:
            return answer
        text = answer.read()
        try:
            failure = json.loads(text)
            raise Error(failure["code"], failure["message"], answer.status)
        except (ValueError, KeyError, TypeError):
            raise Error("internal", "status %d: %r" % (answer.status, text[:200]), answer.status) from None

    def request(self, method, path, body=None, **parameters):
        """Sends a request and returns the answer, decoded."""
        try:
            with self.open(method, path, body, **parameters) as answer:
                return json.loads(answer.read())
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise Broken("the answer is not complete: %s" % e) from e

    def lines(self, method, path, **parameters):
        """Yields the values of a stream of lines, as they come."""
        with self.open(method, path, **parameters) as answer:
            for line in answer:
                yield json.loads(line)

    # Jobs.

    def submit(self, *jobs, wait="placed", **job):
        """Submits jobs, dictionaries with the keys of JobSpec, or one with these keys, and
        returns them as they are then. wait is stored, placed or done."""
        specs = list(jobs) + ([job] if job else [])
        if wait != "done":
            return self.request("POST", "/v1/jobs", {"jobs": specs}, wait=wait)["jobs"]
        values = list(self.lines("POST", "/v1/jobs", body={"jobs": specs}, wait=wait))
        if len(values) < 2:
            raise Broken("the daemon went away before the jobs were over; they are stored")
        if "failure" in values[1]:
            raise Error(values[1]["failure"]["code"], values[1]["failure"]["message"])
        return values[1]["jobs"]

    def jobs(self, **parameters):
        """Returns an iterator over jobs, as they come, however many: no side holds them all. Parameters: id,
        state, user, site, name, all, sort (see GET /v1/jobs). list(...) has them at once."""
        wanted = {k: "true" if v is True else v for k, v in parameters.items()}
        return _items(self.open("GET", "/v1/jobs", **wanted), "jobs")

    def job(self, id):
        """Returns one job."""
        return self.request("GET", "/v1/jobs/" + urllib.parse.quote(id, safe=""))

    def why(self, id):
        """Returns why a job is where it is."""
        return self.request("GET", "/v1/jobs/" + urllib.parse.quote(id, safe="") + "/why")

    def logs(self, id, stream="stdout", follow=False, tail=None, *, patience=15):
        """Returns the output of a job as a file of bytes; follow: until the job is over. Then a
        connection that breaks is made again, for patience seconds, and the output goes on where
        it was. If the job was started again meanwhile reading it raises an Error: refused."""
        path = "/v1/jobs/" + urllib.parse.quote(id, safe="") + "/logs"
        if not follow:
            return self.open("GET", path, stream=stream, tail=tail)
        return io.BufferedReader(_Output(self, path, stream, tail, patience))

    def wait(self, *ids, timeout=None):
        """Returns jobs once all of them are over. Raises TimeoutError after timeout seconds."""
        body = {"ids": list(ids)}
        if timeout is not None:
            body["timeout"] = timeout
        reply = self.request("POST", "/v1/wait", body)
        if reply.get("timedOut"):
            raise TimeoutError("jobs %s are not over after %s seconds" % (", ".join(ids), timeout))
        return reply["jobs"]

    def _change(self, what, ids, **more):
        return self.request("POST", "/v1/" + what, {"ids": list(ids), **more})["jobs"]

    def cancel(self, *ids, cause=""):
        """Ends jobs."""
        return self._change("cancel", ids, **({"cause": cause} if cause else {}))

    def hold(self, *ids):
        """Keeps jobs from starting."""
        return self._change("hold", ids)

    def release(self, *ids):
        """Lets jobs start that were held."""
        return self._change("release", ids)

    def requeue(self, *ids):
        """Runs jobs again."""
        return self._change("requeue", ids)

    def preview(self, **job):
        """Returns what would become of a job, without submitting it."""
        return self.request("POST", "/v1/preview", {"jobs": [job]})

    def watch(self, *, patience=15, gap=None, **parameters):
        """Yields jobs as they are, then every change of them, as they come. A connection that
        breaks is made again, for patience seconds, and goes on where it was. If what has changed
        meanwhile is not known, gap is called with the reason, and all jobs are yielded again."""
        place, retry = None, _Retry(patience)
        while True:
            try:
                headers = {"Accept": "text/event-stream", **({"Last-Event-ID": place} if place else {})}
                with self.open("GET", "/v1/watch", headers=headers, **parameters) as answer:
                    for kind, id, data in _events(answer):
                        if kind == "job":
                            yield data
                        elif kind == "gap" and gap:
                            gap(data["reason"])
                        if id:
                            place = id
                            retry.there()
            except Error as e:
                retry.after(e)

    # The site and its federation.

    def node(self):
        """Returns what this node is and charges."""
        return self.request("GET", "/v1/node")

    def sites(self):
        """Returns this site and those that it knows."""
        return self.request("GET", "/v1/sites")["sites"]

    def quotes(self, **parameters):
        """Searches the directory; parameters: maxPrice, minSpeed, cpus, free, gpus, limit, sort."""
        return self.request("GET", "/v1/quotes", **parameters)["sites"]

    def leases(self):
        """Returns processors borrowed and lent."""
        return self.request("GET", "/v1/leases")["leases"]

    def history(self, **parameters):
        """Yields the job log, oldest first; parameters: since, until, origin, site, org, user, job, kind."""
        return self.lines("GET", "/v1/history", **parameters)
