// Runs a fuzz target over each file of a folder, over truncations of it and over mutations drawn from a
// fixed seed. A fault ends the process; the last line on stderr then names the file that its input was made
// from.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr std::size_t kTruncations = 300;
constexpr std::size_t kMutations = 500;

void run(const std::string& input) {
  // An exact-size copy on the heap lets the address sanitizer see the first byte past the end.
  const std::vector<std::uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

std::string mutate(std::string input, std::mt19937& random) {
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  const auto any_byte = [&] { return static_cast<char>(below(256)); };
  for (std::size_t changes = 1 + below(4); changes > 0; --changes) {
    const std::size_t at = input.empty() ? 0 : below(input.size());
    switch (input.empty() ? 1 : below(6)) {
      case 0:
        input[at] = any_byte();
        break;
      case 1:
        input.insert(at, 1 + below(8), any_byte());
        break;
      case 2:
        input.erase(at, 1 + below(16));
        break;
      case 3:  // a stretch a second time
        input.insert(below(input.size()), input.substr(at, 1 + below(64)));
        break;
      case 4:
        input[at] = static_cast<char>(input[at] ^ static_cast<char>(1 << below(8)));
        break;
      default: {  // a borderline number over whatever stands there
        constexpr std::uint64_t values[] = {
            0, 0x7F, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, ~0ULL, 1ULL << 40};
        const std::uint64_t value = values[below(std::size(values))];
        for (std::size_t i = 0; i < 8 && at + i < input.size(); ++i)
          input[at + i] = static_cast<char>(value >> (8 * i));
      }
    }
  }
  return input;
}

std::size_t replay(const std::string& input, std::mt19937& random) {
  run(input);
  const std::size_t step = std::max<std::size_t>(1, input.size() / kTruncations);
  std::size_t runs = 1;
  for (std::size_t n = 0; n < input.size(); n += step, ++runs) run(input.substr(0, n));
  for (std::size_t i = 0; i < kMutations; ++i, ++runs) run(mutate(input, random));
  return runs;
}

int replay_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::mt19937 random(1);
  std::size_t runs = 0;
  for (const std::filesystem::path& path : files) {
    std::fprintf(stderr, "%s\n", path.c_str());
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path.string());
    runs += replay(std::string(std::istreambuf_iterator<char>(file), {}), random);
  }
  std::printf("%zu files, %zu inputs\n", files.size(), runs);
  return files.empty() ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  try {
    return replay_folder(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
