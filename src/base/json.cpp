#include "qgen/base/json.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"

namespace qgen {
namespace {

/// Builds a Json from parser events on an explicit stack, so that depth costs no call stack.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string_view source, const JsonLimits& limits) : source_(source), limits_(limits) {}

  bool null() override { return add(Json()); }
  bool boolean(bool value) override { return add(Json(Json::Value(value))); }
  bool number_integer(number_integer_t value) override { return add(Json(Json::Value(std::int64_t{value}))); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return add(Json(Json::Value(static_cast<std::int64_t>(value))));
    }
    return add(Json(Json::Value(std::uint64_t{value})));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return add(Json(Json::Value(double{value})));
  }
  bool string(string_t& value) override { return add(Json(Json::Value(std::move(value)))); }
  bool binary(binary_t& /*value*/) override { return false; }

  bool start_object(std::size_t /*size*/) override { return open(Frame{JsonObject{}, {}}); }
  bool key(string_t& name) override {
    stack_.back().key = std::move(name);
    return true;
  }
  bool end_object() override {
    check_names(std::get<JsonObject>(stack_.back().value));
    return close();
  }
  bool start_array(std::size_t /*size*/) override { return open(Frame{JsonArray{}, {}}); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    fail("malformed JSON at byte " + std::to_string(position));
  }

  Json take() { return std::move(root_); }

  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(ErrorKind::file, escape_control(source_) + ": " + reason);
  }

 private:
  struct Frame {
    std::variant<JsonArray, JsonObject> value;
    std::string key;
  };

  bool open(Frame frame) {
    if (stack_.size() >= limits_.max_depth) {
      fail("JSON nested deeper than " + std::to_string(limits_.max_depth) + " levels");
    }
    stack_.push_back(std::move(frame));
    return true;
  }

  /// Only names that share a slot with others are sorted, by hash, equal hashes by the names, so that no
  /// choice of names is slow.
  void check_names(const JsonObject& members) const {
    const std::size_t slots = std::bit_ceil(32 * members.size() + 1);
    std::vector<std::size_t> hashes;
    std::vector<bool> taken(slots), shared(slots);
    hashes.reserve(members.size());
    for (const auto& [name, value] : members) {
      hashes.push_back(std::hash<std::string_view>{}(name));
      const std::size_t slot = hashes.back() % slots;
      if (taken[slot]) shared[slot] = true;
      taken[slot] = true;
    }
    std::vector<std::pair<std::size_t, std::string_view>> names;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (shared[hashes[i] % slots]) names.emplace_back(hashes[i], members[i].first);
    }
    std::ranges::sort(names);
    const auto twice = std::ranges::adjacent_find(names);
    if (twice != names.end()) fail("the name " + in_quotes(twice->second) + " occurs twice in one object");
  }

  bool close() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    return std::visit([this](auto& value) { return add(Json(Json::Value(std::move(value)))); }, frame.value);
  }

  bool add(Json value) {
    if (++count_ > limits_.max_values)
      fail("JSON of more than " + std::to_string(limits_.max_values) + " values");
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (auto* array = std::get_if<JsonArray>(&stack_.back().value)) {
      make_room(*array);
      array->push_back(std::move(value));
    } else {
      auto& object = std::get<JsonObject>(stack_.back().value);
      make_room(object);
      object.emplace_back(std::move(stack_.back().key), std::move(value));
    }
    return true;
  }

  /// Large containers grow in large steps: room that is not used costs nothing, fresh memory to move to does.
  template <typename Container>
  void make_room(Container& container) const {
    constexpr std::size_t kLarge = 4096, kStep = 8;
    const std::size_t size = container.size();
    if (size < kLarge || size < container.capacity()) return;
    container.reserve(std::min(kStep * size, limits_.max_values));
  }

  std::string_view source_;
  JsonLimits limits_;
  std::vector<Frame> stack_;
  std::size_t count_ = 0;
  Json root_;
};

}  // namespace

std::optional<bool> Json::as_bool() const noexcept {
  const bool* value = std::get_if<bool>(&value_);
  return value == nullptr ? std::nullopt : std::optional<bool>(*value);
}

std::optional<std::int64_t> Json::as_int() const noexcept {
  const auto* value = std::get_if<std::int64_t>(&value_);
  return value == nullptr ? std::nullopt : std::optional<std::int64_t>(*value);
}

std::optional<double> Json::as_double() const noexcept {
  if (const auto* value = std::get_if<double>(&value_)) return *value;
  if (const auto* value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* value = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*value);
  return std::nullopt;
}

const Json* Json::find(std::string_view key) const noexcept {
  const JsonObject* object = as_object();
  if (object == nullptr) return nullptr;
  for (const auto& [name, value] : *object) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string_view Json::type_name() const noexcept {
  constexpr std::array<std::string_view, 8> names{"null",   "boolean", "integer", "integer",
                                                  "number", "string",  "array",   "object"};
  return names[value_.index()];
}

Json parse_json(std::string_view text, std::string_view source, const JsonLimits& limits) {
  Builder builder(source, limits);
  // The parser would take a NUL byte for the end of the text and never look at what follows.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos)
    builder.fail("malformed JSON: a NUL byte at byte " + std::to_string(nul + 1));
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

}  // namespace qgen
