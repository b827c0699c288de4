"""Draws docs/gallery/: reports of a sound run and of five faulty gradients, made by gradcheck itself.

gallery.py GRADCHECK CAPTURES OUT.  The faults are put into captures of sound kernels, by formulas that people really
write; each must fail, or there is nothing to show. Exit 77 where captures or Chromium are missing."""

import json
import math
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, find_chromium  # noqa: E402


def read(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        head = json.loads(file.read(size))
        data = file.read()
    meta = head.pop("__metadata__", {})
    tensors = {}
    for name, entry in head.items():
        begin, end = entry["data_offsets"]
        values = list(struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])) if entry["dtype"] == "F32" else data[begin:end]
        tensors[name] = [entry["dtype"], entry["shape"], values]
    return meta, tensors


def write(path, meta, tensors):
    head, data = {"__metadata__": meta}, b""
    for name, (dtype, shape, values) in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values) if dtype == "F32" else values
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def layernorm_dx(tensors, eps, third=True, divisor=0):
    rows, cols = tensors["x"][1]
    x, dy, w = tensors["x"][2], tensors["dy"][2], tensors["w"][2] if "w" in tensors else [1.0] * cols
    out = []
    for r in range(rows):
        row = x[r * cols:(r + 1) * cols]
        g = [a * b for a, b in zip(dy[r * cols:(r + 1) * cols], w)]
        mean = math.fsum(row) / cols
        s = math.sqrt(math.fsum((v - mean) ** 2 for v in row) / (cols - divisor) + eps)
        hat = [(v - mean) / s for v in row]
        a, b = math.fsum(g) / cols, math.fsum(p * q for p, q in zip(g, hat)) / cols
        out += [(p - a - (q * b if third else 0)) / s for p, q in zip(g, hat)]
    return out


def faults(captures):
    """(name, capture, what is done to its tensors)"""
    layernorm, softmax = f"{captures}/layernorm_f32_64x768.safetensors", f"{captures}/softmax_f32_32x512.safetensors"

    def third(meta, t):
        t["dx"][2] = layernorm_dx(t, float(meta.get("eps", 1e-5)), third=False)

    def unbiased(meta, t):
        t["dx"][2] = layernorm_dx(t, float(meta.get("eps", 1e-5)), divisor=1)

    def last_row(_meta, t):
        cols = t["dx"][1][-1]
        t["dx"][2][-cols:] = [0.0] * cols

    def tail(_meta, t):  # the last row is left out of a sum over rows, as a wrong grid does
        rows, cols = t["x"][1]
        last = t["dy"][2][(rows - 1) * cols:]
        t["db"][2] = [v - d for v, d in zip(t["db"][2], last)]

    def no_sum(_meta, t):  # p dy instead of p (dy - sum p dy)
        y, dy = t["y"][2], t["dy"][2]
        t["dx"][2] = [a * b for a, b in zip(y, dy)]

    yield "sound", layernorm, lambda _meta, _t: None
    yield "layernorm-third-term", layernorm, third
    yield "layernorm-unbiased-variance", layernorm, unbiased
    yield "layernorm-last-row", layernorm, last_row
    yield "layernorm-bias-misses-a-row", layernorm, tail
    yield "softmax-without-the-sum", softmax, no_sum


def main():
    gradcheck, captures, out = (os.path.abspath(p) for p in sys.argv[1:4])
    if not find_chromium() or not os.path.isdir(captures):
        print("skipped: needs Chromium and the captures")
        return 77
    os.makedirs(out, exist_ok=True)
    bad = 0
    with tempfile.TemporaryDirectory() as folder, Browser(1280, 1000) as browser:
        for name, capture, fault in faults(captures):
            meta, tensors = read(capture)
            if name == "softmax-without-the-sum" and "y" not in tensors:
                tensors["y"] = ["F32", tensors["x"][1], softmax_rows(tensors["x"])]
                fault(meta, tensors)
                del tensors["y"]
            else:
                fault(meta, tensors)
            write(f"{folder}/{name}.safetensors", meta, tensors)
            done = subprocess.run([gradcheck, "replay", f"{name}.safetensors", "--html", f"{name}.html"], cwd=folder, capture_output=True, text=True)
            expected = 0 if name == "sound" else 1
            if done.returncode != expected:
                print(f"FAILED  {name}: exit {done.returncode}, must be {expected}\n{done.stdout}{done.stderr}")
                bad += 1
                continue
            for scheme in ("light", "dark") if name in ("sound", "layernorm-third-term") else ("light",):
                browser.scheme(scheme == "dark")
                browser.open(f"{folder}/{name}.html")
                browser.size(1280, 2400)
                browser.js("new Promise((r) => setTimeout(r, 400))")
                browser.picture(f"{out}/{name}-{scheme}.png", most=1250)
                browser.size(1280, 1000)
                if browser.errors:
                    print(f"FAILED  {name}: {browser.errors[:2]}")
                    bad += 1
            print(f"ok      {name}: {done.stdout.splitlines()[-1]}")
    return 1 if bad else 0


def softmax_rows(x):
    _, (rows, cols), values = x
    out = []
    for r in range(rows):
        row = values[r * cols:(r + 1) * cols]
        top = max(row)
        e = [math.exp(v - top) for v in row]
        total = math.fsum(e)
        out += [v / total for v in e]
    return out


sys.exit(main())
