#include <cstddef>
#include <cstdint>
#include <vector>

#include "qgen/tensor/block_format.h"

namespace {

/// Reads `blocks` as blocks of a type, in memory of exactly their size, and quantises what comes out of them.
void read_and_write(qgen::DType dtype, const std::vector<std::byte>& blocks) {
  const std::int64_t n = std::ssize(blocks) / qgen::block_bytes(dtype) * qgen::block_elements(dtype);
  std::vector<float> values(static_cast<std::size_t>(n));
  qgen::dequantizer(dtype)(blocks.data(), n, values.data());
  for (const qgen::DType to :
       {qgen::DType::f16, qgen::DType::q8_0, qgen::DType::q4_0, qgen::DType::q4_k, qgen::DType::q6_k}) {
    const std::int64_t whole = n / qgen::block_elements(to) * qgen::block_elements(to);
    std::vector<std::byte> written(static_cast<std::size_t>(qgen::row_bytes(to, whole)));
    qgen::quantizer(to)(values.data(), whole, written.data());
    std::vector<float> again(static_cast<std::size_t>(whole));
    qgen::dequantizer(to)(written.data(), whole, again.data());
  }
}

}  // namespace

// The first byte chooses the type, the rest is blocks; all of it taken as floats is quantised, too.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto dtype = static_cast<qgen::DType>(data[0] % qgen::kWeightTypes);
  const auto bytes = static_cast<std::size_t>(qgen::block_bytes(dtype));
  const auto* first = reinterpret_cast<const std::byte*>(data) + 1;
  read_and_write(dtype, {first, first + (size - 1) / bytes * bytes});
  read_and_write(qgen::DType::f32, {first, first + (size - 1) / 4 * 4});
  return 0;
}
