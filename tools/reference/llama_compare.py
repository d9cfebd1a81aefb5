#!/usr/bin/env python3
"""Compares the logits and the greedy tokens of qgen and of llama.cpp, both reading the same GGUF files.

  pip install gguf llama-cpp-python
  llama_compare.py --program build/dev/bin/qgen_logits FILE.gguf...

What both are measured by is llama.cpp reading the same file with all weights dequantised to F32 by the gguf package: it then
rounds nothing but single precision itself, where with other types it rounds what it multiplies them by. From prompts of random
tokens that exact forward goes on greedily, and each program reads its text, qgen in steps whose arithmetic is that of decoding.
Keys and values are held in single precision everywhere. Printed for each file and program: the mean Kullback-Leibler divergence
in nats from the exact distribution, and how many greedy tokens are the same; where one differs, how much better the exact
forward finds its own choice, at most, as a part of the spread (standard deviation) of its logits: small means a near-tie."""

import argparse
import subprocess
import tempfile
from pathlib import Path

import gguf
import llama_cpp
import numpy

F32 = 0  # GGML_TYPE_F32


def dequantize(file, out):
    """Copies a GGUF file, all tensors as F32."""
    reader = gguf.GGUFReader(file)
    writer = gguf.GGUFWriter(out, reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if field.name.startswith("GGUF.") or field.name in ("general.architecture", "general.file_type"):
            continue
        writer.add_key_value(field.name, field.contents(), field.types[0], field.types[1] if len(field.types) > 1 else None)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(numpy.float32)
        writer.add_tensor(tensor.name, values.reshape(tensor.shape[::-1]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def open_llama(model, tokens):
    return llama_cpp.Llama(model, n_ctx=tokens, n_batch=tokens, n_threads=2, logits_all=True, type_k=F32, type_v=F32, verbose=False)


def run_exact(model, prompts, length, answer):
    """Prompts of `length` random tokens and greedy answers: ids [prompts, length + answer] and all logits, [..., V]."""
    llama = open_llama(model, length + answer)
    draw = numpy.random.default_rng(1)
    ids, logits = [], []
    for _ in range(prompts):
        llama.reset()
        llama.eval(draw.integers(0, llama.n_vocab(), length).tolist())
        for _ in range(answer):
            llama.eval([int(llama.scores[llama.n_tokens - 1].argmax())])
        ids.append(llama.input_ids.copy())
        logits.append(llama.scores.astype(numpy.float64))
    return numpy.stack(ids), numpy.stack(logits)


def run_llama(model, ids):
    llama = open_llama(model, ids.shape[1])
    logits = []
    for row in ids.tolist():
        llama.reset()
        llama.eval(row)
        logits.append(llama.scores.astype(numpy.float64))
    return numpy.stack(logits)


def run_qgen(program, model, ids):
    with tempfile.NamedTemporaryFile() as out:
        lines = "".join(" ".join(map(str, row)) + "\n" for row in ids.tolist())
        subprocess.run([program, model, "auto", "f32", "best", "16", out.name], input=lines.encode(),
                       stderr=subprocess.PIPE, check=True)
        return numpy.fromfile(out.name, "<f4").astype(numpy.float64).reshape(*ids.shape, -1)


def log_softmax(logits):
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - numpy.log(numpy.exp(shifted).sum(-1, keepdims=True))


def compare(exact, tested, length):
    logs = log_softmax(exact)
    divergence = (numpy.exp(logs) * (logs - log_softmax(tested))).sum(-1).mean()
    answers, chosen = exact[:, length - 1:-1], tested[:, length - 1:-1].argmax(-1)
    lost = answers.max(-1) - numpy.take_along_axis(answers, chosen[..., None], -1)[..., 0]
    same = answers.argmax(-1) == chosen
    tie = "" if same.all() else f" ({lost.max() / exact.std(-1).mean():.0e})"
    return f"{divergence:.0e}, {same.sum()} of {same.size}{tie}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--answer", type=int, default=32)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    print("| file | qgen | llama.cpp |\n|---|---|---|")
    for file in options.files:
        with tempfile.TemporaryDirectory() as folder:
            dequantize(file, f"{folder}/exact.gguf")
            ids, exact = run_exact(f"{folder}/exact.gguf", options.prompts, options.length, options.answer)
        cells = [compare(exact, tested, options.length) for tested in (run_qgen(options.program, file, ids), run_llama(file, ids))]
        print("| " + " | ".join([Path(file).name] + cells) + " |", flush=True)


if __name__ == "__main__":
    main()
