"""Headless Chromium, driven through its DevTools pipe: no driver, no web socket, no dependency."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOW = "needs Chromium: apt-get install chromium"
DEADLINE = 60.0


class Browser:
    """One page.  `errors` are what its console complained about, `requests` the addresses it asked for."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self.out = _pipe()
        self.into, theirs_out = _pipe()
        connect = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'  # it reads from 3 and writes to 4
        self.process = subprocess.Popen(
            [
                "bash",
                "-c",
                connect,
                CHROMIUM,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--no-first-run",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
                f"--user-data-dir={self.folder.name}",
            ],
            pass_fds=(theirs_in, theirs_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.buffer, self.last, self.session = b"", 0, None
        self.errors, self.requests = [], []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self.session = None
        try:
            self.send("Browser.close")
            self.process.wait(10)
        except Exception:
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        self.folder.cleanup()

    def send(self, method, **params):
        """Send a command and return its answer."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + DEADLINE
        while True:
            found = self._read(end)
            if found.get("id") == self.last:
                if "error" in found:
                    raise RuntimeError(f"{method}: {found['error']}")
                return found["result"]
            self._note(found)

    def _read(self, end):
        while b"\0" not in self.buffer:
            if not select.select([self.into], [], [], max(end - time.monotonic(), 0))[0]:
                raise TimeoutError(f"Chromium said nothing for {DEADLINE} s")
            more = os.read(self.into, 1 << 20)
            if not more:
                raise RuntimeError("Chromium has ended")
            self.buffer += more
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path, width, height=900, dark=False):
        """Show a report and wait until its figures are drawn."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.send("Page.navigate", url=Path(path).resolve().as_uri())
        end = time.monotonic() + DEADLINE
        while self.evaluate("document.documentElement?.dataset.drawn ?? null") is None:
            if self.errors or time.monotonic() > end:
                raise AssertionError(f"the figures are not drawn: {self.errors}")
            time.sleep(0.05)

    def evaluate(self, expression):
        """Return the value of a JavaScript expression."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def screenshot(self, path, whole=False):
        """Keep a picture of what is seen, or of the whole page."""
        found = self.send("Page.captureScreenshot", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(found["data"]))


def _pipe():
    """A pipe whose ends are not 3 or 4, which Chromium's must be."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved
