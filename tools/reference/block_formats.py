#!/usr/bin/env python3
"""Writes tests/tensor/block_formats.txt: what independent implementations make of GGUF's quantised blocks.

    pip install gguf
    tools/reference/block_formats.py path/to/libggml-base.so

Lines of the file, numbers of bytes and floats (little-endian) in hexadecimal:
    dequantize TYPE BYTES FLOATS        by the gguf package
    quantize TYPE FLOATS BYTES          by the gguf package
    error TYPE DISTRIBUTION ERROR...    sums of squared errors of blocks (of 16 together for those of 256) that
                                        quantize_row_*_ref of the ggml library leaves on the values of samples()
"""

import ctypes
import pathlib
import sys

import gguf
import numpy as np

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "tensor" / "block_formats.txt"
Type = gguf.GGMLQuantizationType
# Where the f16 scales of a block lie.
SCALES = {
    Type.Q8_0: [0], Type.Q4_0: [0], Type.Q4_1: [0, 2], Type.Q5_0: [0], Type.Q5_1: [0, 2], Type.Q2_K: [80, 82],
    Type.Q3_K: [108], Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.IQ4_NL: [0], Type.IQ4_XS: [0],
}
# Ordinary, both signs of zero, subnormal, the largest, infinite, not a number.
SCALE_BITS = [0x2A66, 0xB1C7, 0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0xFBFF, 0x7C00, 0x7E01]


def dequantize_lines(rng):
    for type, offsets in SCALES.items():
        elements, size = gguf.GGML_QUANT_SIZES[type]
        for n in range(5 if elements == 256 else 10):
            block = rng.integers(0, 256, size, dtype=np.uint8)
            for place, offset in enumerate(offsets):
                # The second scale walks through the list in another order than the first.
                bits = SCALE_BITS[(n * (2 if elements == 256 else 1) + place * 3) % len(SCALE_BITS)]
                block[offset:offset + 2] = [bits & 0xFF, bits >> 8]
            with np.errstate(invalid="ignore", over="ignore"):
                values = gguf.dequantize(block, type)
            yield f"dequantize {type.name} {block.tobytes().hex()} {values.astype('<f4').tobytes().hex()}"


def samples(distribution, count):
    """Values that C++ can repeat exactly: sums of parts of a linear congruential generator, in double."""
    state, out = 12345, np.empty(count)
    for i in range(count):
        total = 0.0
        for _ in range(4):
            state = (state * 1664525 + 1013904223) % 2**32
            total += (state >> 8) / 2**24 - 0.5
        out[i] = total
    if distribution == "heavy":
        out = out * out * out
    elif distribution == "shifted":
        out = out * 0.25 + 1
    elif distribution == "sparse":
        out = np.where(np.arange(count) % 5 == 0, out, 0.0)
    elif distribution == "rows":
        out = out * (1 + np.arange(count) // 64 % 7)
    return out.astype(np.float32)


def quantize_lines():
    edge = np.array([0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.5, 126.5, -126.5, 127, 12.25, 1e-3, -1e-3] * 2)
    blocks = [edge, np.zeros(32), np.full(32, -0.375), samples("plain", 32), samples("heavy", 32) * 1e4,
              samples("plain", 32) * 1e-6, np.arange(32) - 20.0]
    for block in blocks:
        block = block.astype(np.float32)
        encoded = gguf.quantize(block, Type.Q8_0)
        yield f"quantize Q8_0 {block.astype('<f4').tobytes().hex()} {encoded.tobytes().hex()}"


def error_lines(library):
    ggml = ctypes.CDLL(library)
    quantizers = {Type.Q4_0: ggml.quantize_row_q4_0_ref, Type.Q4_K: ggml.quantize_row_q4_K_ref,
                  Type.Q6_K: ggml.quantize_row_q6_K_ref}
    for type, quantize in quantizers.items():
        elements, size = gguf.GGML_QUANT_SIZES[type]
        together = elements if elements == 32 else elements * 16
        for distribution in ("plain", "heavy", "shifted", "sparse", "rows"):
            values = samples(distribution, 2048 if elements == 32 else 16384)
            encoded = np.zeros(len(values) // elements * size, dtype=np.uint8)
            quantize(values.ctypes.data_as(ctypes.c_void_p), encoded.ctypes.data_as(ctypes.c_void_p),
                     ctypes.c_int64(len(values)))
            errors = (values.astype(np.float64) - gguf.dequantize(encoded, type)) ** 2
            sums = errors.reshape(-1, together).sum(axis=1)
            yield f"error {type.name} {distribution} " + " ".join(f"{value:.6e}" for value in sums)


def main():
    lines = [*dequantize_lines(np.random.default_rng(5)), *quantize_lines(), *error_lines(sys.argv[1])]
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
