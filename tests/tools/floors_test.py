"""tools/check/floors finds each kind of breach in a small made-up tree, and nothing in a clean one."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FLOORS = Path(__file__).resolve().parents[2] / "tools" / "check" / "floors"

CLEAN = {
    "include/qgen/base/error.h": "#include <string>\n",
    "include/qgen/plan/plan.h": '#include "qgen/base/error.h"\n',
    "include/qgen/models/architecture.h": '#include "qgen/plan/plan.h"\n',
    "include/qgen/kernels/table.h": '#include "qgen/base/error.h"\n',
    "include/qgen/device/device.h": '#include "qgen/plan/plan.h"\n',
    "src/base/json.cpp": '#include "qgen/base/error.h"\n\n#include <nlohmann/json.hpp>\n',
    "src/kernels/generic/dot.inl": "",
    "src/kernels/isa_scalar.cpp": '#include <immintrin.h>\n#include "kernels/generic/dot.inl"\n',
    "src/device/cpu/executor.h": "",
    "src/device/cpu/executor.cpp": '#include "executor.h"\n#include "qgen/kernels/table.h"\n',
    "src/cli/json_text.h": "#include <nlohmann/json_fwd.hpp>\n",
    "src/device/CMakeLists.txt": "qgen_room(device SOURCES cpu/executor.cpp DEPENDS base plan kernels)\n",
}


class FloorsTest(unittest.TestCase):
    def run_on(self, files):
        with tempfile.TemporaryDirectory() as root:
            for name, text in files.items():
                path = Path(root, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return subprocess.run([sys.executable, FLOORS, "--root", root], capture_output=True, text=True, check=False)

    def assert_breach(self, name, text, expected):
        result = self.run_on({**CLEAN, name: text})
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn(f"{name}:", result.stdout)
        self.assertIn(expected, result.stdout)
        self.assertIn(" 1 breaches", result.stdout)

    def test_clean_tree_passes(self):
        result = self.run_on(CLEAN)
        self.assertEqual((result.returncode, result.stderr), (0, ""), result.stdout)

    def test_empty_tree_is_no_pass(self):
        self.assertEqual(self.run_on({"README.md": ""}).returncode, 1)

    def test_upper_floor(self):
        self.assert_breach("src/base/up.cpp", '#include "qgen/plan/plan.h"\n', "base may not include plan")

    def test_sideways(self):
        self.assert_breach("src/models/wall.cpp", '#include "qgen/device/device.h"\n', "models may not include device")
        self.assert_breach("src/device/wall.cpp", '#  include "qgen/models/architecture.h"\n', "device may not include models")

    def test_kernels_only_from_the_cpu_and_reference_devices(self):
        self.assert_breach("src/device/registry.cpp", '#include "qgen/kernels/table.h"\n', "device may not include kernels")
        self.assert_breach("include/qgen/device/extra.h", '#include "qgen/kernels/table.h"\n',
                           "device may not include kernels")

    def test_private_header_of_another_room(self):
        self.assert_breach("src/cli/peek.cpp", '#include "device/cpu/executor.h"\n', "private to another room")

    def test_path_with_dots(self):
        self.assert_breach("src/plan/peek.cpp", '#include "../base/json.cpp"\n', "without '..'")

    def test_public_header_stays_free_of_other_libraries_and_private_files(self):
        for include in ("<nlohmann/json.hpp>", "<nlohmann/json_fwd.hpp>", "<sys/mman.h>", '"kernels/generic/dot.inl"'):
            self.assert_breach("include/qgen/kernels/bad.h", f"#include {include}\n", "a public header includes only")

    def test_other_libraries_stay_in_cpp_files(self):
        self.assert_breach("src/cli/options.h", "#include <CLI/CLI.hpp>\n", "stay in .cpp files")

    def test_cuda_headers_stay_in_their_folder(self):
        self.assert_breach("src/device/registry.cpp", "#include <cuda_runtime.h>\n", "CUDA headers stay")

    def test_unknown_targets(self):
        self.assert_breach("src/plan/gone.cpp", '#include "qgen/plan/gone.h"\n', "no such public header")
        self.assert_breach("src/plan/gone.cpp", '#include "gone.h"\n', "no such file")
        self.assert_breach("src/plan/macro.cpp", "#include HEADER\n", "computed by a macro")

    def test_file_outside_the_rooms(self):
        self.assert_breach("src/extra/new.cpp", "#include <string>\n", "belongs to no room")

    def test_link_dependencies(self):
        self.assert_breach("src/models/CMakeLists.txt", "qgen_room(models\n  SOURCES a.cpp\n  DEPENDS base device)\n",
                           "models may not depend on device")


if __name__ == "__main__":
    unittest.main()
