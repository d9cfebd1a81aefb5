"""tools/bench/compare with programs that print known figures."""

import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPARE = Path(__file__).resolve().parents[2] / "tools" / "bench" / "compare"


def row(prompt, fresh, depth, rate):
    return {"n_prompt": prompt, "n_gen": fresh, "n_depth": depth, "avg_ts": rate}


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def program(self, name, body):
        """A Python program; its arguments are also written to NAME.log, a line each run."""
        path = self.path / name
        path.write_text(f"#!{sys.executable}\nimport json, sys\nlog = open({str(path) + '.log'!r}, 'a')\n"
                        f"print(json.dumps(sys.argv[1:]), file=log)\n{body}")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def calls(self, name):
        return [json.loads(line) for line in (self.path / f"{name}.log").read_text().splitlines()]

    def run_compare(self, *options):
        rows = json.dumps([row(512, 0, 0, 900.0), row(0, 64, 4096, 40.0)])
        # A word is two tokens; a prompt's size in bytes goes to the log.
        qgen = self.program("qgen", f"""
if sys.argv[1] == 'tokenize':
    print(2 * sys.stdin.read().count(' the'))
elif '-f' in sys.argv:
    print(json.dumps([len(open(sys.argv[sys.argv.index('-f') + 1]).read())]), file=log)
else:
    print({rows!r})
""")
        # Faster at the prompt without flash attention, faster at depth with it.
        llama = self.program("llama-bench", f"""
on = sys.argv[sys.argv.index('-fa') + 1] == '1'
prompt = sys.argv[sys.argv.index('-p') + 1] != '0'
rows = [{row(512, 0, 0, 0)!r}] if prompt else [{row(0, 64, 4096, 0)!r}]
rows[0]['avg_ts'] = (300.0 if on else 450.0) if prompt else (20.0 if on else 10.0)
print(json.dumps(rows))
""")
        command = [sys.executable, "-B", str(COMPARE), "--qgen", qgen, "--llama-bench", llama, "-m", "M", "--gguf", "G",
                   "--weights", "q8", "-d", "4096", *options]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"})

    def test_compares_with_the_better_setting(self):
        result = self.run_compare("--rounds", "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("| pp512 | 900.0 (900.0–900.0) | llama.cpp | 450.0 (450.0–450.0) | 2.00 (2.00–2.00) |", result.stdout)
        self.assertIn("| tg64 @ d4096 | 40.0 (40.0–40.0) | llama.cpp | 20.0 (20.0–20.0) | 2.00 (2.00–2.00) |", result.stdout)
        self.assertEqual(len(self.calls("qgen")), 3)

    def test_gives_both_programs_the_same_work(self):
        self.run_compare("--rounds", "1", "-t", "7")
        qgen = self.calls("qgen")[0]
        for call in self.calls("llama-bench"):
            self.assertEqual(call[call.index("-t") + 1], "7")
            self.assertEqual(call[call.index("-m") + 1], "G")
        for name, value in (("-t", "7"), ("-m", "M"), ("--weights", "q8"), ("-d", "4096"), ("-p", "512")):
            self.assertEqual(qgen[qgen.index(name) + 1], value)

    def test_measures_whole_processes_up_to_the_first_token(self):
        result = self.run_compare("--rounds", "1", "--first-token")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"- llama\.cpp, flash attention on: [\d.]+ s, \d+ MB at most; [\d.]+ times qgen's")
        self.assertEqual(self.calls("qgen")[-1], [256 * len(" the")])

    def test_stops_where_a_program_fails(self):
        self.program("broken", "sys.exit(3)")
        result = self.run_compare("--qgen", str(self.path / "broken"))
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("exit status 3", result.stderr)

    def test_wants_something_to_compare_with(self):
        result = subprocess.run([sys.executable, str(COMPARE), "--qgen", "q", "-m", "M"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 2)


if __name__ == "__main__":
    unittest.main()
