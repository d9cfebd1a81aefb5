#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/json.h"
#include "qgen/base/utf8.h"

namespace qgen {

/// A place in a JSON file, which may be missing there, read with messages that name file and place.
/// Everything throws Error{file} if the value is of another type. `source` must outlive it.
class JsonField {
 public:
  JsonField(const Json* value, std::string path, std::string_view source)
      : value_(value), path_(std::move(path)), source_(source) {}

  /// Neither missing nor null.
  [[nodiscard]] bool present() const noexcept { return value_ != nullptr && !value_->is_null(); }

  [[nodiscard]] JsonField operator[](std::string_view key) const {
    const Json* member = value_ == nullptr ? nullptr : value_->find(key);
    return {member, path_.empty() ? std::string(key) : path_ + "." + std::string(key), source_};
  }
  [[nodiscard]] JsonField element(std::size_t i) const {
    return {&array()[i], path_ + "[" + std::to_string(i) + "]", source_};
  }

  [[nodiscard]] const JsonObject& object() const {
    return get(value_ ? value_->as_object() : nullptr, "an object");
  }
  [[nodiscard]] const JsonArray& array() const {
    return get(value_ ? value_->as_array() : nullptr, "an array");
  }
  [[nodiscard]] const std::string& string() const {
    return get(value_ ? value_->as_string() : nullptr, "a string");
  }
  [[nodiscard]] bool boolean() const {
    const std::optional<bool> boolean = value_ ? value_->as_bool() : std::nullopt;
    if (!boolean) expected("true or false");
    return *boolean;
  }
  [[nodiscard]] bool boolean_or(bool otherwise) const { return present() ? boolean() : otherwise; }

  [[nodiscard]] const Json* value() const noexcept { return value_; }

  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(ErrorKind::file, escape_control(source_) + ": " + shorten(path_) + " " + reason);
  }
  [[noreturn]] void unsupported(const std::string& reason) const {
    throw Error(ErrorKind::unsupported, escape_control(source_) + ": " + shorten(path_) + " " + reason);
  }

 private:
  template <typename T>
  const T& get(const T* value, const char* what) const {
    if (value == nullptr) expected(what);
    return *value;
  }
  [[noreturn]] void expected(const std::string& what) const {
    if (value_ == nullptr) fail("is missing, " + what + " was expected");
    fail("is of type " + std::string(value_->type_name()) + ", " + what + " was expected");
  }

  const Json* value_;
  std::string path_;
  std::string_view source_;
};

}  // namespace qgen
