#!/usr/bin/env python3
"""Writes tests/weights/written.gguf with the gguf package: every type of metadata and tensors of several types. The
project's own writer must give the same bytes.

    pip install gguf
    tools/reference/gguf_writer.py
"""

import pathlib

import gguf
import numpy as np

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "weights" / "written.gguf"


def main():
    writer = gguf.GGUFWriter(OUT, "test")
    writer.add_uint8("a.u8", 200)
    writer.add_int8("a.i8", -100)
    writer.add_uint16("a.u16", 60000)
    writer.add_int16("a.i16", -30000)
    writer.add_uint32("a.u32", 4000000000)
    writer.add_int32("a.i32", -2000000000)
    writer.add_float32("a.f32", 1.5)
    writer.add_bool("a.bool", True)
    writer.add_string("a.text", "Grüße")
    writer.add_uint64("a.u64", 1 << 63)
    writer.add_int64("a.i64", -(1 << 62))
    writer.add_float64("a.f64", 0.1)
    writer.add_array("a.texts", ["a", "", "bcd"])
    writer.add_array("a.numbers", [1, -2, 3])
    writer.add_array("a.reals", [0.5, -0.25])
    writer.add_tensor("matrix", np.arange(12, dtype=np.float32).reshape(3, 4))
    writer.add_tensor("vector", np.array([1, -2, 0.5], dtype=np.float16))
    values = np.arange(128, dtype=np.float32).reshape(2, 2, 32) - 50
    writer.add_tensor("blocks", gguf.quantize(values, gguf.GGMLQuantizationType.Q8_0),
                      raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
