"""Drives a headless Chromium over its debugging pipe (file descriptors 3 and 4); needs nothing but Python."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find_chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One browser with one page. Collects console errors, exceptions and every request that is made."""

    def __init__(self, width=1280, height=900):
        self.profile = tempfile.mkdtemp(prefix="gradcheck-browser-")
        to_read, self.to_write = os.pipe()
        self.to_listen, to_answer = os.pipe()

        def three_and_four():
            # Both may sit on 3 or 4 already: move them out of the way first.
            r, w = os.dup(to_read), os.dup(to_answer)
            while r in (3, 4):
                r = os.dup(r)
            while w in (3, 4):
                w = os.dup(w)
            os.dup2(r, 3)
            os.dup2(w, 4)

        self.process = subprocess.Popen(
            [find_chromium(), "--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--user-data-dir=" + self.profile, f"--window-size={width},{height}", "about:blank"],
            preexec_fn=three_and_four, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_answer)
        self.buffer = b""
        self.number = 0
        self.errors = []
        self.requests = []
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        self.size(width, height)

    def close(self):
        self.session = None
        try:  # asked to go, it takes its children along
            self.call("Browser.close", seconds=5)
            self.process.wait(10)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to_write)
        os.close(self.to_listen)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _message(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.to_listen], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.to_listen, 1 << 20)
            if not part:
                raise EOFError("the browser has gone")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def _note(self, message):
        method, p = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append("exception: " + json.dumps(p["exceptionDetails"])[:800])
        elif method == "Runtime.consoleAPICalled" and p["type"] in ("error", "warning", "assert"):
            self.errors.append("console: " + json.dumps(p["args"])[:800])
        elif method == "Log.entryAdded" and p["entry"]["level"] in ("error", "warning"):
            self.errors.append("log: " + json.dumps(p["entry"])[:800])
        elif method == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])

    def call(self, method, params=None, seconds=60):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params or {}}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_write, data):]
        deadline = time.monotonic() + seconds
        while True:
            answer = self._message(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._note(answer)

    def js(self, expression, seconds=60):
        result = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True,
                                                "userGesture": True}, seconds)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:1500])
        return result["result"].get("value")

    def wait(self, expression, seconds=30):
        deadline = time.monotonic() + seconds
        while not self.js(expression):
            if time.monotonic() > deadline:
                raise TimeoutError("never true: " + expression)
            time.sleep(0.02)

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})

    def scheme(self, dark):
        self.call("Emulation.setEmulatedMedia",
                  {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def open(self, path, anchor=""):
        self.call("Page.navigate", {"url": "about:blank"})
        self.errors.clear()
        self.requests.clear()
        self.call("Page.navigate", {"url": "file://" + os.path.abspath(path) + anchor})
        self.wait("location.protocol === 'file:' && document.documentElement?.dataset.ready === 'yes'")

    def key(self, key, text=None):
        common = {"key": key, "code": key}
        codes = {"Tab": 9, "Enter": 13, "ArrowRight": 39, "ArrowLeft": 37, "ArrowDown": 40, "ArrowUp": 38, "Escape": 27}
        if key in codes:
            common["windowsVirtualKeyCode"] = codes[key]
        if key == "Enter":
            text = "\r"
        down = dict(common, type="keyDown", **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", down)
        self.call("Input.dispatchKeyEvent", dict(common, type="keyUp"))

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y})

    def click(self, selector):
        box = self.js(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
                      " const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", {"type": kind, "x": box[0], "y": box[1], "button": "left", "clickCount": 1})

    def picture(self, path, whole=True, most=6000):
        self.js("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(r, 150))))")
        params = {"format": "png"}
        if whole:
            size = self.js("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
            params.update(captureBeyondViewport=True,
                          clip={"x": 0, "y": 0, "width": size[0], "height": min(size[1], most), "scale": 1})
        data = self.call("Page.captureScreenshot", params)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
