#!/usr/bin/env python3
"""How far qgen and llama.cpp, reading the same GGUF files, are from an exact forward of them.

  pip install torch transformers safetensors gguf
  gguf_accuracy.py --program build/dev/bin/qgen_logits --llama-perplexity PATH --text TEXT FILE.gguf...

The exact forward is that of transformers in single precision, with the file's weights dequantised by the gguf package. The
windows are those of llama-perplexity: 512 tokens each, of which the second half counts. Printed for each file: mean
Kullback-Leibler divergence in nats and how often the most likely token agrees, of qgen (steps of 512 tokens, and of 16, the
arithmetic of decoding) and of llama.cpp from the exact forward; and how often the two programs agree. The file that llama.cpp
writes has its logits rounded to 16 bits, none more than 16 below the largest, so its divergences are known to about 1e-3."""

import argparse
import struct
import subprocess
import tempfile
from pathlib import Path

import numpy
import torch
from transformers import AutoModelForCausalLM

WINDOW = 512
FIRST = WINDOW // 2


def run_llama(program, model, text, windows, out):
    """The windows' ids and log probabilities [windows, FIRST - 1, V] as llama-perplexity writes them."""
    subprocess.run([program, "-m", model, "-f", text, "-c", str(WINDOW), "-t", "2", "--chunks", str(windows),
                    "--kl-divergence-base", out], capture_output=True, check=True)
    data = Path(out).read_bytes()
    assert data[:8] == b"_logits_"
    window, vocab, count = struct.unpack_from("<Iii", data, 8)
    assert window == WINDOW
    ids = numpy.frombuffer(data, "<i4", window * count, 20).reshape(count, window)
    row = 2 * ((vocab + 1) // 2) + 4
    rows = numpy.frombuffer(data, "<u2", count * (WINDOW - 1 - FIRST) * row, 20 + 4 * window * count).reshape(-1, row)
    head = rows[:, :4].copy().view("<f4").astype(numpy.float64)
    logs = rows[:, 4:4 + vocab].astype(numpy.float64) * head[:, :1] + head[:, 1:]
    return ids, torch.log_softmax(torch.from_numpy(logs), -1).reshape(count, -1, vocab)


def run_qgen(program, model, ids, vocab, step):
    with tempfile.NamedTemporaryFile() as out:
        lines = "\n".join(" ".join(map(str, row)) for row in ids) + "\n"
        subprocess.run([program, model, "auto", "auto", "best", str(step), out.name], input=lines.encode(),
                       stderr=subprocess.PIPE, check=True)
        logits = torch.from_numpy(numpy.fromfile(out.name, "<f4")).reshape(len(ids), WINDOW, vocab)
    return torch.log_softmax(logits[:, FIRST:-1].double(), -1)


@torch.no_grad()
def run_exact(model, ids):
    path = Path(model)
    exact = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32,
                                                 attn_implementation="eager").eval()
    rows = [exact(torch.tensor(row[None])).logits[0, FIRST:-1] for row in ids.astype("int64")]
    return torch.log_softmax(torch.stack(rows).double(), -1)


def agreement(one, other):
    return f"{100 * (one.argmax(-1) == other.argmax(-1)).double().mean():.2f} %"


def compare(reference, tested):
    divergence = (reference.exp() * (reference - tested)).sum(-1).mean()
    return f"{divergence:.2e}, {agreement(reference, tested)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--llama-perplexity", required=True)
    parser.add_argument("--text", required=True)
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    print("| file | qgen, exact | qgen decoding, exact | llama.cpp, exact | qgen and llama.cpp agree |\n|---|---|---|---|---|")
    for file in options.files:
        with tempfile.TemporaryDirectory() as folder:
            ids, llama = run_llama(options.llama_perplexity, file, options.text, options.windows, f"{folder}/base")
        vocab = llama.shape[-1]
        exact = run_exact(file, ids)
        prompt = run_qgen(options.program, file, ids, vocab, WINDOW)
        decoding = run_qgen(options.program, file, ids, vocab, 16)
        cells = [Path(file).name, compare(exact, prompt), compare(exact, decoding), compare(exact, llama), agreement(llama, prompt)]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
