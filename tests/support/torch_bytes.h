#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Zip archives and pickles made by hand, right or wrong.
namespace qgen::test {

/// `count` bytes of `value`, the least first.
inline std::string little(std::uint64_t value, int count) {
  std::string bytes;
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

/// A zip archive whose entries are stored.
class ZipBytes {
 public:
  struct Options {
    std::uint16_t method = 0, flags = 0;
    int local_size_change = 0;  ///< added to the size in the directory
    bool zip64 = false;         ///< sizes and place in the extra field
  };

  void add(const std::string& name, const std::string& data) { add(name, data, Options()); }
  void add(const std::string& name, const std::string& data, const Options& options) {
    const std::uint64_t place = bytes_.size();
    const std::uint64_t size = data.size() + static_cast<std::uint64_t>(options.local_size_change);
    const std::string common =
        little(20, 2) + little(options.flags, 2) + little(options.method, 2) + little(0, 8);
    bytes_ += little(0x04034b50, 4) + common + little(data.size(), 4) + little(data.size(), 4) +
              little(name.size(), 2) + little(0, 2) + name + data;
    const std::uint64_t ones = 0xFFFFFFFF;
    const std::string extra =
        options.zip64 ? little(1, 2) + little(24, 2) + little(size, 8) + little(size, 8) + little(place, 8)
                      : "";
    const std::uint64_t stated = options.zip64 ? ones : size;
    directory_ += little(0x02014b50, 4) + little(20, 2) + common + little(stated, 4) + little(stated, 4) +
                  little(name.size(), 2) + little(extra.size(), 2) + little(0, 2) + little(0, 2) +
                  little(0, 6) + little(options.zip64 ? ones : place, 4) + name + extra;
    ++count_;
  }

  [[nodiscard]] std::string file() const { return file(count_, bytes_.size()); }
  /// The same, whose end record states these.
  [[nodiscard]] std::string file(std::uint64_t count, std::uint64_t directory) const {
    return bytes_ + directory_ + little(0x06054b50, 4) + little(0, 4) + little(count, 2) + little(count, 2) +
           little(directory_.size(), 4) + little(directory, 4) + little(0, 2);
  }
  /// The same with a second end record, which alone has the numbers.
  [[nodiscard]] std::string file64(std::uint64_t count, std::uint64_t directory) const {
    const std::uint64_t place = bytes_.size() + directory_.size();
    return bytes_ + directory_ + little(0x06064b50, 4) + little(44, 8) + little(45, 2) + little(45, 2) +
           little(0, 8) + little(count, 8) + little(count, 8) + little(directory_.size(), 8) +
           little(directory, 8) + little(0x07064b50, 4) + little(0, 4) + little(place, 8) + little(1, 4) +
           little(0x06054b50, 4) + little(0, 4) + little(0xFFFF, 2) + little(0xFFFF, 2) +
           little(0xFFFFFFFF, 4) + little(0xFFFFFFFF, 4) + little(0, 2);
  }
  [[nodiscard]] std::uint64_t entries() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t directory() const noexcept { return bytes_.size(); }

 private:
  std::string bytes_, directory_;
  std::uint64_t count_ = 0;
};

// Pieces of pickles of protocol 2 and more: each leaves one value on the stack.

inline std::string pickle(const std::string& value) {
  return "\x80\x04" + value + ".";
}
inline std::string pickled_text(std::string_view text) {
  return "X" + little(text.size(), 4) + std::string(text);
}
inline std::string pickled_bytes(std::string_view bytes) {
  return "B" + little(bytes.size(), 4) + std::string(bytes);
}
inline std::string pickled(std::int64_t value) {
  return "\x8a\x08" + little(static_cast<std::uint64_t>(value), 8);
}
inline std::string pickled_global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
inline std::string pickled_tuple(const std::vector<std::string>& items) {
  std::string out = "(";
  for (const std::string& item : items) out += item;
  return out + "t";
}
inline std::string pickled_list(const std::vector<std::string>& items) {
  std::string out = "](";
  for (const std::string& item : items) out += item;
  return out + "e";
}
/// Keys and values in turn.
inline std::string pickled_dict(const std::vector<std::string>& items) {
  std::string out = "}(";
  for (const std::string& item : items) out += item;
  return out + "u";
}
inline std::string pickled_call(const std::string& function, const std::vector<std::string>& arguments) {
  return function + pickled_tuple(arguments) + "R";
}

/// A tensor as torch.save describes it.
struct TensorBytes {
  std::string key = "0", type = "FloatStorage";
  std::int64_t elements = 0, offset = 0;
  std::vector<std::int64_t> shape, strides;

  [[nodiscard]] std::string pickle() const {
    const std::string storage = pickled_tuple({pickled_text("storage"), pickled_global("torch", type),
                                               pickled_text(key), pickled_text("cpu"), pickled(elements)}) +
                                "Q";
    return pickled_call(pickled_global("torch._utils", "_rebuild_tensor_v2"),
                        {storage, pickled(offset), numbers(shape), numbers(strides), "\x89",
                         pickled_call(pickled_global("collections", "OrderedDict"), {})});
  }

 private:
  static std::string numbers(const std::vector<std::int64_t>& values) {
    std::vector<std::string> items;
    for (const std::int64_t value : values) items.push_back(pickled(value));
    return pickled_tuple(items);
  }
};

/// A whole checkpoint: the pickle of this value, and tensors whose elements are all zero.
class TorchBytes {
 public:
  /// The pickle of a contiguous float32 tensor with a storage of its own.
  std::string tensor(const std::vector<std::int64_t>& shape) {
    TensorBytes tensor{
        .key = std::to_string(storages_.size()), .elements = 1, .shape = shape, .strides = shape};
    for (std::size_t i = shape.size(); i-- > 0;) {
      tensor.strides[i] = tensor.elements;
      tensor.elements *= shape[i];
    }
    storages_.push_back(std::string(4 * static_cast<std::size_t>(tensor.elements), '\0'));
    return tensor.pickle();
  }
  [[nodiscard]] std::string file(const std::string& root) const {
    ZipBytes zip;
    zip.add("ckpt/data.pkl", pickle(root));
    zip.add("ckpt/byteorder", "little");
    for (std::size_t i = 0; i < storages_.size(); ++i)
      zip.add("ckpt/data/" + std::to_string(i), storages_[i]);
    return zip.file();
  }

 private:
  std::vector<std::string> storages_;
};

}  // namespace qgen::test
