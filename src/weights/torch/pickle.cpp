#include "weights/torch/pickle.h"

#include <bit>
#include <unordered_map>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"
#include "weights/torch/little_endian.h"

// A pickle is a program for a machine with a stack and a numbered memo. Here each instruction that makes a
// value adds one to a list, and stack, memo and collections hold places in that list: a value is never
// copied, moved or walked while it is read, so neither depth nor cycles nor repeated references cost
// anything. The opcodes are those of protocols 2 to 5 as Python's own picklers write them.

namespace qgen {
namespace {

enum class Op : std::uint8_t {
  mark = '(',
  stop = '.',
  pop = '0',
  pop_mark = '1',
  dup = '2',
  bin_float = 'G',
  bin_int = 'J',
  bin_int1 = 'K',
  bin_int2 = 'M',
  none = 'N',
  bin_persid = 'Q',
  reduce = 'R',
  bin_string = 'T',
  short_bin_string = 'U',
  bin_unicode = 'X',
  append = 'a',
  build = 'b',
  global = 'c',
  appends = 'e',
  bin_get = 'h',
  long_bin_get = 'j',
  bin_put = 'q',
  long_bin_put = 'r',
  set_item = 's',
  tuple = 't',
  set_items = 'u',
  empty_tuple = ')',
  empty_list = ']',
  empty_dict = '}',
  bin_bytes = 'B',
  short_bin_bytes = 'C',
  proto = 0x80,
  new_obj = 0x81,
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  new_true = 0x88,
  new_false = 0x89,
  long1 = 0x8a,
  long4 = 0x8b,
  short_bin_unicode = 0x8c,
  bin_unicode8 = 0x8d,
  bin_bytes8 = 0x8e,
  empty_set = 0x8f,
  add_items = 0x90,
  frozen_set = 0x91,
  new_obj_ex = 0x92,
  stack_global = 0x93,
  memoize = 0x94,
  frame = 0x95,
  byte_array8 = 0x96,
};

constexpr unsigned kOldestProtocol = 2, kNewestProtocol = 5;

class PickleMachine {
 public:
  PickleMachine(Bytes data, const std::string& source) : data_(data), source_(source) {}

  Pickle run() {
    read_protocol();
    for (;;) {
      start_ = at_;
      const auto op = static_cast<Op>(take<std::uint8_t>());
      if (op == Op::stop) break;
      const bool known = scalar(op) || text(op) || collection(op) || object(op) || memo(op) || stack(op);
      if (!known) fail("is not one that checkpoints and vocabularies have");
    }
    pickle_.root = pop();
    return std::move(pickle_);
  }

 private:
  using Ids = std::vector<PickleId>;

  [[noreturn]] void fail(const std::string& reason) const {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto op = std::to_integer<unsigned>(data_[start_]);
    throw Error(ErrorKind::file, source_ + ": the pickle is damaged or not supported: opcode 0x" +
                                     kDigits[op >> 4] + kDigits[op & 15U] + " at byte " +
                                     std::to_string(start_) + " " + reason);
  }
  [[noreturn]] void fail_truncated() const {
    throw Error(ErrorKind::file, source_ + ": truncated: the pickle ends after " +
                                     std::to_string(data_.size()) + " bytes without its STOP");
  }

  void read_protocol() {
    if (data_.empty()) fail_truncated();
    if (data_[0] != std::byte{static_cast<std::uint8_t>(Op::proto)}) {
      throw Error(ErrorKind::file,
                  source_ + ": not a pickle of protocol 2 to 5 (it does not begin with 0x80)");
    }
    at_ = 1;
    const unsigned protocol = take<std::uint8_t>();
    if (protocol < kOldestProtocol || protocol > kNewestProtocol) {
      throw Error(ErrorKind::file, source_ + ": pickle protocol " + std::to_string(protocol) +
                                       " is not supported, only 2 to 5");
    }
  }

  // Reading.

  Bytes take_bytes(std::uint64_t count) {
    if (count > data_.size() - at_) fail_truncated();
    const Bytes bytes = data_.subspan(at_, count);
    at_ += count;
    return bytes;
  }
  template <typename T>
  T take() {
    return little_endian<T>(take_bytes(sizeof(T)));
  }
  /// Up to the next line feed, which is left out.
  std::string_view take_line() {
    const std::string_view rest = as_text(data_.subspan(at_));
    const std::size_t length = rest.find('\n');
    if (length == std::string_view::npos) fail_truncated();
    at_ += length + 1;
    return rest.substr(0, length);
  }

  // The stack.

  void count_references(std::size_t more) {
    references_ += more;
    if (references_ > kMostPickleReferences)
      fail("leads to more than " + std::to_string(kMostPickleReferences) +
           " references, the most that are read");
  }
  void push(PickleId id) {
    count_references(1);
    stack_.push_back(id);
  }
  void push(PickleValue value) {
    if (pickle_.values.size() == kMostPickleValues)
      fail("leads to more than " + std::to_string(kMostPickleValues) + " values, the most that are read");
    pickle_.values.push_back(std::move(value));
    push(static_cast<PickleId>(pickle_.values.size() - 1));
  }
  /// Where the part of the stack above the last mark begins.
  [[nodiscard]] std::size_t floor() const noexcept { return marks_.empty() ? 0 : marks_.back(); }
  [[nodiscard]] PickleId top() const {
    if (stack_.size() <= floor()) fail("finds too little on the stack");
    return stack_.back();
  }
  PickleId pop() {
    const PickleId id = top();
    stack_.pop_back();
    --references_;
    return id;
  }
  /// The topmost `count` in the order in which they were pushed.
  Ids pop(std::size_t count) {
    if (stack_.size() - floor() < count) fail("finds too little on the stack");
    const auto first = stack_.end() - static_cast<std::ptrdiff_t>(count);
    Ids ids(first, stack_.end());
    stack_.erase(first, stack_.end());
    return ids;  // they stay counted: they are in a collection now
  }
  Ids pop_to_mark() {
    if (marks_.empty()) fail("finds no mark on the stack");
    Ids ids = pop(stack_.size() - floor());
    marks_.pop_back();
    return ids;
  }

  // The opcodes. Each function tells whether the opcode is one of its own.

  bool scalar(Op op) {
    switch (op) {
      case Op::none:
        push(PickleValue{});
        return true;
      case Op::new_true:
      case Op::new_false:
        push({.kind = PickleKind::boolean, .integer = op == Op::new_true ? 1 : 0});
        return true;
      case Op::bin_int1:
        push_integer(take<std::uint8_t>());
        return true;
      case Op::bin_int2:
        push_integer(take<std::uint16_t>());
        return true;
      case Op::bin_int:
        push_integer(static_cast<std::int32_t>(take<std::uint32_t>()));
        return true;
      case Op::long1:
        push_long(take_bytes(take<std::uint8_t>()));
        return true;
      case Op::long4:
        push_long(take_bytes(take<std::uint32_t>()));
        return true;
      case Op::bin_float:
        push({.kind = PickleKind::number, .number = take_float()});
        return true;
      default:
        return false;
    }
  }

  void push_integer(std::int64_t value) { push({.kind = PickleKind::integer, .integer = value}); }

  /// Two's complement of any length, the least byte first.
  void push_long(Bytes bytes) {
    if (bytes.size() > sizeof(std::int64_t)) {
      push({.kind = PickleKind::big_integer});
      return;
    }
    const bool negative = !bytes.empty() && (bytes.back() & std::byte{0x80}) != std::byte{0};
    std::uint64_t value = negative ? ~std::uint64_t{0} : 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
      value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    push_integer(static_cast<std::int64_t>(value));
  }

  /// The one number that has its highest byte first.
  double take_float() {
    std::uint64_t bits = 0;
    for (const std::byte byte : take_bytes(sizeof bits))
      bits = bits << 8 | std::to_integer<std::uint64_t>(byte);
    return std::bit_cast<double>(bits);
  }

  bool text(Op op) {
    switch (op) {
      case Op::short_bin_string:
      case Op::short_bin_unicode:
        push_text(PickleKind::text, take<std::uint8_t>());
        return true;
      case Op::bin_string:
      case Op::bin_unicode:
        push_text(PickleKind::text, take<std::uint32_t>());
        return true;
      case Op::bin_unicode8:
        push_text(PickleKind::text, take<std::uint64_t>());
        return true;
      case Op::short_bin_bytes:
        push_text(PickleKind::bytes, take<std::uint8_t>());
        return true;
      case Op::bin_bytes:
        push_text(PickleKind::bytes, take<std::uint32_t>());
        return true;
      case Op::bin_bytes8:
      case Op::byte_array8:
        push_text(PickleKind::bytes, take<std::uint64_t>());
        return true;
      default:
        return false;
    }
  }

  void push_text(PickleKind kind, std::uint64_t length) {
    push({.kind = kind, .text = as_text(take_bytes(length))});
  }

  bool collection(Op op) {
    switch (op) {
      case Op::empty_tuple:
        push({.kind = PickleKind::tuple});
        return true;
      case Op::tuple1:
      case Op::tuple2:
      case Op::tuple3:
        push({.kind = PickleKind::tuple,
              .items = pop(static_cast<std::size_t>(op) - static_cast<std::size_t>(Op::tuple1) + 1)});
        return true;
      case Op::tuple:
        push({.kind = PickleKind::tuple, .items = pop_to_mark()});
        return true;
      case Op::empty_list:
        push({.kind = PickleKind::list});
        return true;
      case Op::empty_dict:
        push({.kind = PickleKind::dict});
        return true;
      case Op::empty_set:
        push({.kind = PickleKind::set});
        return true;
      case Op::frozen_set:
        push({.kind = PickleKind::set, .items = pop_to_mark()});
        return true;
      default:
        return fill(op);
    }
  }

  bool fill(Op op) {
    switch (op) {
      case Op::append:
        put_into(PickleKind::list, pop(1));
        return true;
      case Op::appends:
        put_into(PickleKind::list, pop_to_mark());
        return true;
      case Op::add_items:
        put_into(PickleKind::set, pop_to_mark());
        return true;
      case Op::set_item:
        put_into(PickleKind::dict, pop(2));
        return true;
      case Op::set_items: {
        const Ids ids = pop_to_mark();
        if (ids.size() % 2 != 0) fail("finds a key without a value");
        put_into(PickleKind::dict, ids);
        return true;
      }
      default:
        return false;
    }
  }

  /// Into the collection on top of the stack, or the object that would be one.
  void put_into(PickleKind kind, const Ids& ids) {
    PickleValue& target = pickle_.values[top()];
    if (target.kind != kind && target.kind != PickleKind::call)
      fail("finds no collection to put things into");
    target.items.insert(target.items.end(), ids.begin(), ids.end());
  }

  bool object(Op op) {
    switch (op) {
      case Op::global: {
        const std::string_view module = take_line();
        push({.kind = PickleKind::global, .text = module, .name = take_line()});
        return true;
      }
      case Op::stack_global: {
        const Ids ids = pop(2);
        const PickleValue &module = pickle_[ids[0]], &name = pickle_[ids[1]];
        if (module.kind != PickleKind::text || name.kind != PickleKind::text)
          fail("finds no name on the stack");
        push({.kind = PickleKind::global, .text = module.text, .name = name.text});
        return true;
      }
      case Op::reduce:
      case Op::new_obj:
        push_call(pop(2));
        return true;
      case Op::new_obj_ex: {
        Ids ids = pop(3);
        ids.pop_back();  // arguments by name: no value that is needed has them
        push_call(std::move(ids));
        return true;
      }
      case Op::build:
        (void)pop();
        (void)top();
        return true;
      case Op::bin_persid:
        push({.kind = PickleKind::persistent, .items = pop(1)});
        return true;
      default:
        return false;
    }
  }

  void push_call(Ids ids) {
    if (pickle_[ids[1]].kind != PickleKind::tuple) fail("finds no tuple of arguments on the stack");
    push({.kind = PickleKind::call, .items = std::move(ids)});
  }

  bool memo(Op op) {
    switch (op) {
      case Op::bin_put:
        memorise(take<std::uint8_t>());
        return true;
      case Op::long_bin_put:
        memorise(take<std::uint32_t>());
        return true;
      case Op::memoize:
        memorise(static_cast<std::uint32_t>(memo_.size()));
        return true;
      case Op::bin_get:
        push(remembered(take<std::uint8_t>()));
        return true;
      case Op::long_bin_get:
        push(remembered(take<std::uint32_t>()));
        return true;
      default:
        return false;
    }
  }

  void memorise(std::uint32_t number) {
    const PickleId id = top();
    if (memo_.insert_or_assign(number, id).second) count_references(1);
  }
  [[nodiscard]] PickleId remembered(std::uint32_t number) const {
    const auto found = memo_.find(number);
    if (found == memo_.end())
      fail("asks for number " + std::to_string(number) + ", which was never memorised");
    return found->second;
  }

  bool stack(Op op) {
    switch (op) {
      case Op::mark:
        if (marks_.size() == kMostPickleMarks)
          fail("opens a collection within " + std::to_string(kMostPickleMarks) +
               " others, the most that are read");
        marks_.push_back(stack_.size());
        return true;
      case Op::pop:
        if (stack_.size() > floor()) {
          (void)pop();
        } else {
          (void)pop_to_mark();
        }
        return true;
      case Op::pop_mark:
        references_ -= pop_to_mark().size();
        return true;
      case Op::dup:
        push(top());
        return true;
      case Op::frame:
        if (take<std::uint64_t>() > data_.size() - at_) fail_truncated();
        return true;
      default:
        return false;
    }
  }

  Bytes data_;
  const std::string& source_;
  std::size_t at_ = 0, start_ = 0;  ///< the next byte; the opcode being run
  Pickle pickle_;
  Ids stack_;
  std::vector<std::size_t> marks_;  ///< heights of the stack
  std::unordered_map<std::uint32_t, PickleId> memo_;
  std::size_t references_ = 0;
};

std::string global_name(const PickleValue& value) {
  return shorten(std::string(value.text) + "." + std::string(value.name));
}

}  // namespace

bool Pickle::is_global(const PickleValue& value, std::string_view module, std::string_view name) noexcept {
  return value.kind == PickleKind::global && value.text == module && value.name == name;
}

bool Pickle::is_call(const PickleValue& value, std::string_view module,
                     std::string_view name) const noexcept {
  return value.kind == PickleKind::call && is_global(values[value.items[0]], module, name);
}

std::string Pickle::describe(const PickleValue& value) const {
  switch (value.kind) {
    case PickleKind::none:
      return "None";
    case PickleKind::boolean:
      return value.integer != 0 ? "True" : "False";
    case PickleKind::integer:
      return std::to_string(value.integer);
    case PickleKind::big_integer:
      return "an integer of more than 64 bits";
    case PickleKind::number:
      return "a number";
    case PickleKind::text:
      return "a text";
    case PickleKind::bytes:
      return "bytes";
    case PickleKind::tuple:
      return "a tuple";
    case PickleKind::list:
      return "a list";
    case PickleKind::set:
      return "a set";
    case PickleKind::dict:
      return "a dict";
    case PickleKind::global:
      return "the global " + global_name(value);
    case PickleKind::persistent:
      return "a storage";
    case PickleKind::call: {
      const PickleValue& function = values[value.items[0]];
      if (function.kind == PickleKind::global) return "an object made by " + global_name(function);
      return "an object made by another";
    }
  }
  return {};
}

Pickle read_pickle(Bytes data, const std::string& source) {
  return PickleMachine(data, source).run();
}

}  // namespace qgen
