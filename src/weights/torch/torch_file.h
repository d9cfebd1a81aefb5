#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/aligned_buffer.h"
#include "qgen/base/bytes.h"
#include "qgen/weights/checkpoint.h"
#include "weights/torch/pickle.h"
#include "weights/torch/zip.h"

namespace qgen {

/// Tensors that had to be copied.
struct TensorCopies {
  std::vector<AlignedBuffer> buffers;
  std::size_t bytes = 0;  ///< of all
};

/// A file of torch.save (the zip archive that it writes since version 1.6): a pickle, and beside it the
/// elements of the tensors that it describes.
class TorchFile {
 public:
  /// `file` must outlive the object, and `source` names it in messages and is escaped already. Throws
  /// Error{file} for what is damaged, Error{unsupported} for older formats and big-endian files.
  TorchFile(Bytes file, std::string source);

  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  [[nodiscard]] const Pickle& pickle() const noexcept { return pickle_; }

  /// Whether `value` is a tensor or a parameter.
  [[nodiscard]] bool is_tensor(const PickleValue& value) const noexcept;
  /// The tensor that `value` describes; `name` is for messages. It stays where the file is mapped if it lies
  /// there row by row at an address that suits its type; transposed views and the like are copied to
  /// `copies`, all of them together no more than the file has. Throws Error{file} naming the tensor.
  [[nodiscard]] StoredTensor tensor(const PickleValue& value, std::string_view name,
                                    TensorCopies& copies) const;

 private:
  struct Layout;

  [[nodiscard]] const PickleValue& unwrap(const PickleValue& value) const noexcept;
  [[nodiscard]] Layout layout(const PickleValue& value, std::string_view name) const;
  [[nodiscard]] Bytes storage(const PickleValue& value, std::string_view name, DType& dtype) const;
  [[nodiscard]] std::vector<std::int64_t> counts(const PickleValue& value, std::string_view name) const;
  [[noreturn]] void refuse(std::string_view name, const std::string& reason) const;

  Bytes file_;
  std::string source_;
  ZipEntries entries_;
  std::string folder_;  ///< of all entries, with its slash
  Pickle pickle_;
};

}  // namespace qgen
