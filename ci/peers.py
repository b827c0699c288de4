#!/usr/bin/env python3
"""Times PyTorch's backward kernels and its gradcheck on a GPU runner, for the tables in docs/performance.md.

    python3 ci/peers.py

Device time, median of 15, caches flushed and the launch's cost hidden before every call, as `gradcheck bench` does.
"""
import time

import torch
import torch.nn.functional as F

FLUSH = torch.empty(512 << 20, dtype=torch.int8, device="cuda")


def device_microseconds(run, repeats=15):
    run()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        FLUSH.zero_()
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return sorted(times)[repeats // 2]


def backward_of(output, inputs, cotangent):
    return lambda: torch.autograd.grad(output, inputs, cotangent, retain_graph=True)


def normal(*shape, dtype):
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)


def layernorm(rows, cols, dtype):
    x, w, b = normal(rows, cols, dtype=dtype), normal(cols, dtype=dtype), normal(cols, dtype=dtype)
    y = F.layer_norm(x, (cols,), w, b)
    return backward_of(y, (x, w, b), torch.randn_like(y))


def softmax(rows, cols, dtype):
    x = normal(rows, cols, dtype=dtype)
    y = torch.softmax(x, -1)
    return backward_of(y, (x,), torch.randn_like(y))


def linear(rows, k, n, dtype):
    x, w, b = normal(rows, k, dtype=dtype), normal(n, k, dtype=dtype), normal(n, dtype=dtype)
    y = F.linear(x, w, b)
    return backward_of(y, (x, w, b), torch.randn_like(y))


def cross_entropy(rows, v, dtype):
    x = normal(rows, v, dtype=dtype)
    target = torch.randint(v, (rows,), device="cuda")

    def run():
        loss = F.cross_entropy(x, target)
        return torch.autograd.grad(loss, (x,))

    return run


def attention(b, h, s, d, causal):
    q, k, v = (normal(b, h, s, d, dtype=torch.bfloat16) for _ in range(3))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        o = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return backward_of(o, (q, k, v), torch.randn_like(o))


def gradcheck_seconds(function, *inputs):
    begin = time.perf_counter()
    assert torch.autograd.gradcheck(function, inputs)
    return time.perf_counter() - begin


def main():
    f32, bf16 = torch.float32, torch.bfloat16
    print(torch.__version__, torch.cuda.get_device_name())
    for name, run in [
        ("layernorm f32 8192x4096", lambda: layernorm(8192, 4096, f32)),
        ("layernorm bf16 8192x4096", lambda: layernorm(8192, 4096, bf16)),
        ("layernorm bf16 32768x1024", lambda: layernorm(32768, 1024, bf16)),
        ("layernorm bf16 16384x768", lambda: layernorm(16384, 768, bf16)),
        ("layernorm f32 4096x16384", lambda: layernorm(4096, 16384, f32)),
        ("softmax f32 8192x4096", lambda: softmax(8192, 4096, f32)),
        ("softmax bf16 32768x1024", lambda: softmax(32768, 1024, bf16)),
        ("softmax f32 512x131072", lambda: softmax(512, 131072, f32)),
        ("linear bf16 8192x4096x4096", lambda: linear(8192, 4096, 4096, bf16)),
        ("linear bf16 4096x4096x14336", lambda: linear(4096, 4096, 14336, bf16)),
        ("cross_entropy forward and backward bf16 4096x32000", lambda: cross_entropy(4096, 32000, bf16)),
        ("attention bf16 4,16,4096,128 full", lambda: attention(4, 16, 4096, 128, False)),
        ("attention bf16 4,16,4096,128 causal", lambda: attention(4, 16, 4096, 128, True)),
    ]:
        print(f"{name}: {device_microseconds(run()):.1f} us")
        torch.cuda.empty_cache()
    double = dict(dtype=torch.float64, requires_grad=True)
    x, w, b = torch.randn(32, 128, **double), torch.randn(128, **double), torch.randn(128, **double)
    seconds = gradcheck_seconds(lambda x, w, b: F.layer_norm(x, (128,), w, b), x, w, b)
    print(f"torch.autograd.gradcheck layernorm 32x128 f64, CPU: {seconds:.3f} s")
    seconds = gradcheck_seconds(lambda x: torch.softmax(x, -1), x)
    print(f"torch.autograd.gradcheck softmax 32x128 f64, CPU: {seconds:.3f} s")


if __name__ == "__main__":
    main()
