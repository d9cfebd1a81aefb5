#!/usr/bin/env python3
"""Compares a tokenizer program with Hugging Face `tokenizers` on many strings.

usage: tokenizer_compare.py FOLDER COUNT [SEED] -- COMMAND...

COMMAND reads JSON strings, one a line, and writes arrays of ids, one a line, as `qgen tokenize -m FOLDER --jsonl -`
does. It is run twice, the second time with --parse-special appended.
"""

import json
import pathlib
import subprocess
import sys

from tokenizers import Tokenizer

import tokenizer_strings


def ids_of(command, strings):
    text = "".join(json.dumps(s) + "\n" for s in strings)
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    cut = sys.argv.index("--")
    folder, count, *seed = sys.argv[1:cut]
    command = sys.argv[cut + 1 :]
    strings = tokenizer_strings.curated() + tokenizer_strings.long_runs(3000)
    strings += tokenizer_strings.Random(int(seed[0]) if seed else 1).strings(int(count))
    reference = Tokenizer.from_file(str(pathlib.Path(folder) / "tokenizer.json"))
    reference.no_truncation()
    reference.no_padding()
    differences = 0
    for parse_special in (False, True):
        reference.encode_special_tokens = not parse_special
        expected = [e.ids for e in reference.encode_batch(strings)]
        got = ids_of(command + (["--parse-special"] if parse_special else []), strings)
        assert len(got) == len(strings)
        for string, e, g in zip(strings, expected, got):
            if e != g:
                differences += 1
                if differences <= 20:
                    print(f"{string!r}\n  expected {e}\n  got      {g}")
        print(f"parse_special {parse_special}: {len(strings)} strings compared")
    print(f"{differences} differences")
    sys.exit(differences != 0)


if __name__ == "__main__":
    main()
