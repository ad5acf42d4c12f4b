# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, spoken to over a pipe in its DevTools protocol, with nothing but Python."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

ANSWER_S = 60  # how long a browser on a busy computer may take for one answer


def find_chromium():
    """The path of a browser, or None."""
    named = os.environ.get("ESPALIER_CHROMIUM")
    return named or shutil.which("chromium") or shutil.which("google-chrome")


class Browser:
    """One browser process; a context manager that ends it."""

    def __init__(self, path):
        self.profile = tempfile.mkdtemp(prefix="espalier-browser-")
        to_child, self.out = os.pipe()
        self.into, from_child = os.pipe()

        def put_pipes():  # the protocol is spoken on descriptors 3 and 4
            low = [os.dup(to_child), os.dup(from_child)]
            # Out of the way of 3 and 4 themselves.
            high = [os.dup(fd) for fd in low]
            high = [os.dup(fd) if fd < 5 else fd for fd in high]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        command = [path, "--headless=new", "--remote-debugging-pipe", "--disable-gpu",
                   "--no-first-run", "--disable-dev-shm-usage", "--disable-background-networking",
                   "--disable-component-update", "--disable-sync", "--mute-audio",
                   f"--user-data-dir={self.profile}", "about:blank"]
        if os.getuid() == 0:
            command.insert(1, "--no-sandbox")
        self.process = subprocess.Popen(command, preexec_fn=put_pipes, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.buffer = b""
        self.number = 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, until):
        """The next message, or None when there is none until then."""
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                return None
            piece = os.read(self.into, 1 << 20)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + ANSWER_S
        while True:
            answer = self.receive(until)
            if answer is None:
                raise RuntimeError(f"no answer to {method}")
            if answer.get("id") != self.number:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def open(self, path, width=1280, height=900):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Tab(self, session, pathlib.Path(path).resolve().as_uri(), width, height)


class Tab:
    """A page that has been loaded and says that it is complete."""

    def __init__(self, browser, session, url, width, height):
        self.browser = browser
        self.session = session
        self.url = url
        self.mouse = (0, 0)
        browser.events.clear()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.resize(width, height)
        self.call("Page.navigate", url=url)
        self.wait("document.documentElement.hasAttribute('data-ready')")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def js(self, expression):
        """The value of an expression; its exception is one here."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, condition):
        until = time.monotonic() + ANSWER_S
        while time.monotonic() < until:
            try:
                if self.js(condition):
                    return
            except RuntimeError:
                pass  # the page is being loaded
            time.sleep(0.05)
        raise RuntimeError(f"{self.url}: never came to be: {condition}; {self.complaints()}")

    def box(self, selector, at=0):
        """Left, top, width and height of an element, which is then in view."""
        found = self.js(f"""(() => {{
            const element = document.querySelectorAll({json.dumps(selector)})[{at}];
            if (!element) return null;
            element.scrollIntoView({{block: "center"}});
            const box = element.getBoundingClientRect();
            return [box.left, box.top, box.width, box.height];
        }})()""")
        if found is None:
            raise RuntimeError(f"{self.url} has no {selector}")
        return found

    def point(self, kind, x, y, button="none"):
        self.mouse = (x, y)
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button,
                  buttons=1 if button == "left" and kind != "mouseReleased" else 0, clickCount=1)

    def hover(self, selector, share_x=0.5, share_y=0.5, at=0):
        left, top, width, height = self.box(selector, at)
        self.point("mouseMoved", left + width * share_x - 1, top + height * share_y)
        self.point("mouseMoved", left + width * share_x, top + height * share_y)

    def click(self, selector, share_x=0.5, share_y=0.5, at=0):
        self.hover(selector, share_x, share_y, at)
        self.point("mousePressed", *self.mouse, "left")
        self.point("mouseReleased", *self.mouse, "left")

    def drag(self, selector, share_from, share_to, share_y=0.5, at=0):
        left, top, width, height = self.box(selector, at)
        y = top + height * share_y
        self.point("mouseMoved", left + width * share_from, y)
        self.point("mousePressed", left + width * share_from, y, "left")
        for step in range(1, 6):
            share = share_from + (share_to - share_from) * step / 5
            self.point("mouseMoved", left + width * share, y, "left")
        self.point("mouseReleased", left + width * share_to, y, "left")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def screenshot(self, path, whole=True, **options):
        """Of the whole page or of what is in view; `clip`: of a part."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **options)
        pathlib.Path(path).write_bytes(base64.b64decode(shot["data"]))

    def _events(self):
        self.js("0")  # what came before has come
        return [event for event in self.browser.events if event.get("sessionId") == self.session]

    def complaints(self):
        """What the console has: errors, warnings, exceptions, what the policy forbade."""
        found = []
        for event in self._events():
            parameters = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"].get("exception", {}).get("description"))
            if event["method"] == "Log.entryAdded":
                found.append(parameters["entry"]["text"])
            if event["method"] == "Runtime.consoleAPICalled" and parameters["type"] != "log":
                found.append(str(parameters["args"]))
        return found

    def requests(self):
        """Everything that was asked for but the page itself and what it holds."""
        urls = [event["params"]["request"]["url"] for event in self._events()
                if event["method"] == "Network.requestWillBeSent"]
        return [url for url in urls if url != self.url and not url.startswith(("data:", "blob:"))]
