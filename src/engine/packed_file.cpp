#include "engine/packed_file.h"

#include <string_view>
#include <system_error>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/output_file.h"
#include "qgen/base/utf8.h"

namespace qgen {
namespace {

constexpr std::string_view kFirstLine = "qgen packed weights 1\n";
constexpr std::size_t kPage = 4096;

}  // namespace

PackedFile::PackedFile(std::filesystem::path path, const std::string& header)
    : path_(std::move(path)), start_(std::string(kFirstLine) + header) {
  start_.resize((start_.size() + kPage - 1) / kPage * kPage, '\0');
  std::error_code problem;
  if (!std::filesystem::exists(path_, problem) && !problem) return;
  MappedFile file(path_);
  if (!as_text(file.bytes()).starts_with(kFirstLine)) {
    throw Error(ErrorKind::file,
                escape_control(path_.string()) +
                    ": expected a file of packed weights, or none, to write one; found another file");
  }
  if (as_text(file.bytes()).starts_with(start_)) file_ = std::move(file);
}

Bytes PackedFile::weights() const noexcept {
  return file_ ? file_->bytes().subspan(start_.size()) : Bytes();
}

void PackedFile::write(Bytes weights) const {
  OutputFile file(path_);
  file.write(as_bytes(start_));
  file.write(weights);
  file.commit();
}

}  // namespace qgen
