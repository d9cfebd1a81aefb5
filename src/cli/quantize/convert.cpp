#include "cli/quantize/convert.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "qgen/tensor/block_format.h"

namespace qgen::cli {
namespace {

constexpr std::int64_t kPieceBytes = std::int64_t{4} << 20;
constexpr float kLargestF16 = 65504;

/// The largest magnitude that a type holds.
float largest_of(DType type) {
  if (type == DType::f32 || type == DType::bf16) return std::numeric_limits<float>::max();
  return type == DType::f16 ? kLargestF16 : kLargestQuantized;
}

/// Converts single rows of one tensor; used by several threads.
class RowConverter {
 public:
  RowConverter(const SourceTensor& tensor, DType type)
      : tensor_(tensor),
        type_(type),
        part_rows_(tensor.rows() / std::max<std::int64_t>(std::ssize(tensor.parts), 1)),
        largest_(largest_of(type)) {}

  /// Writes row r. False for a value that has no place in the type. `values` is room for a row.
  [[nodiscard]] bool convert(std::int64_t r, std::vector<float>& values, std::byte* out) const {
    const StoredTensor& part = tensor_.parts[static_cast<std::size_t>(r / part_rows_)];
    const std::int64_t cols = tensor_.cols();
    const std::byte* from = part.data.data() + source_row(r % part_rows_) * row_bytes(part.dtype, cols);
    values.resize(static_cast<std::size_t>(cols));
    dequantizer(part.dtype)(from, cols, values.data());
    // False for NaN, too.
    if (!std::ranges::all_of(values, [this](float v) { return std::fabs(v) <= largest_; })) return false;
    if (part.dtype == type_) {
      std::memcpy(out, from, static_cast<std::size_t>(row_bytes(type_, cols)));
    } else {
      quantizer(type_)(values.data(), cols, out);
    }
    return true;
  }

 private:
  [[nodiscard]] std::int64_t source_row(std::int64_t r) const {
    if (tensor_.rotated_heads == 0) return r;
    const std::int64_t d = part_rows_ / tensor_.rotated_heads;
    const std::int64_t in_head = r % d;
    return r - in_head + in_head % 2 * (d / 2) + in_head / 2;
  }

  const SourceTensor& tensor_;
  DType type_;
  std::int64_t part_rows_;
  float largest_;
};

[[noreturn]] void refuse(const SourceTensor& tensor, DType type) {
  throw Error(ErrorKind::file, tensor.parts.front().file + ": tensor " + shorten(tensor.name) +
                                   " has a value that is not finite or beyond " +
                                   shortest(static_cast<double>(largest_of(type))) + ", the largest of " +
                                   std::string(dtype_name(type)));
}

}  // namespace

void convert_rows(const SourceTensor& tensor, DType type, int threads,
                  const std::function<bool(Bytes)>& take) {
  const RowConverter converter(tensor, type);
  const std::int64_t bytes = row_bytes(type, tensor.cols());
  const std::int64_t rows = tensor.rows();
  const std::int64_t together = std::clamp<std::int64_t>(kPieceBytes / std::max<std::int64_t>(bytes, 1), 1,
                                                         std::max<std::int64_t>(rows, 1));
  std::vector<std::byte> piece(static_cast<std::size_t>(together * bytes));
  for (std::int64_t begin = 0; begin < rows; begin += together) {
    const std::int64_t count = std::min(together, rows - begin);
    std::atomic<bool> sound = true;
    const auto work = [&](int member) {
      std::vector<float> values;
      const std::int64_t end = begin + count * (member + 1) / threads;
      for (std::int64_t r = begin + count * member / threads; r < end && sound; ++r) {
        if (!converter.convert(r, values, piece.data() + (r - begin) * bytes)) sound = false;
      }
    };
    {
      std::vector<std::jthread> others;
      for (int member = 1; member < threads; ++member) others.emplace_back(work, member);
      work(0);
    }
    if (!sound) refuse(tensor, type);
    if (!take(Bytes(piece).first(static_cast<std::size_t>(count * bytes)))) return;
  }
}

}  // namespace qgen::cli
