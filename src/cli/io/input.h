#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "cli/io/descriptors.h"

namespace qgen::cli {

/// Opens a file, FIFO or device. Throws Error{file}.
Descriptor open_for_reading(const std::string& path);

/// At least one byte, at most `size`; 0 at the end. Throws Error{file} that names `source` and the system's
/// reason.
std::size_t read_some(int fd, const std::string& source, char* to, std::size_t size);

/// All bytes from `fd` to its end. `waiting` is called once if the first byte takes long to come. Throws
/// Error{file}.
std::string read_all(int fd, const std::string& source, const std::function<void()>& waiting = {});

/// All bytes of a file, FIFO or device.
std::string read_file(const std::string& path);

}  // namespace qgen::cli
